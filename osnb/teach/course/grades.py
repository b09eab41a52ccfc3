"""What nbgrader is given of ours: how a hand-in is graded and shown, and grades for platforms.

`nbgrader export --exporter` names `Platforms`; `osnb.teach.course.grading` sets the others.
"""

import pandas as pd
from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import NbGraderPreprocessor

from osnb.teach.course.leaks import without_hidden_tests


class Afresh(NbGraderPreprocessor):
    """A hand-in is graded as if it were the first: before it runs, its earlier marks are none.

    Of a cell that a learner copied, nbgrader leaves metadata that say nothing; they go too, since
    nbgrader takes them for those of an old version and stops for all learners.
    """

    def preprocess(self, nb, resources):
        """The notebook (nbformat's), changed in place, as nbgrader passes it on."""
        for cell in nb.cells:
            if not cell.metadata.get("nbgrader", {}).get("schema_version"):
                cell.metadata.pop("nbgrader", None)
        mine = resources["nbgrader"]
        with Gradebook(mine["db_url"]) as book:
            names = mine["notebook"], mine["assignment"], mine["student"]
            for grade in book.find_submission_notebook(*names).grades:
                grade.auto_score, grade.needs_manual_grade = None, True
            book.db.commit()
        return nb, resources


class HideTests(NbGraderPreprocessor):
    """Students get their feedback without hidden tests."""

    def preprocess(self, nb, resources):
        """The notebook (nbformat's) without them, as nbgrader passes it on."""
        return without_hidden_tests(nb), resources


class Platforms(ExportPlugin):
    """A row a learner and a column a session: moodle.csv and canvas.csv, in the working folder.

    Moodle takes any column that names the learner and maps the others to grade items; Canvas finds
    learners by its own ID (nbgrader's lms_user_id) or by SIS Login ID, and wants the points
    possible in the row below the heads. A session that was not handed in is empty, and so is one
    with a check cell that has no grade, which a line names.
    """

    def export(self, gradebook):
        """Write both files from a gradebook of nbgrader."""
        points, most = {}, {}
        for assignment in gradebook.assignments:
            most[assignment.name] = assignment.max_score
            for submission in assignment.submissions:
                learner, lacking = submission.student.id, _ungraded(submission)
                score = None if lacking else submission.score
                points.setdefault(assignment.name, {})[learner] = score
                if lacking:
                    print(f"{learner}, {assignment.name}: no mark, since {lacking} has no grade")
        heads = ["id", "First name", "Last name", "Email address", "lms"]
        students = gradebook.students
        rows = [[x.id, x.first_name, x.last_name, x.email, x.lms_user_id] for x in students]
        people = pd.DataFrame(rows, columns=heads).fillna("")
        sessions = pd.DataFrame(points, index=people["id"]).reindex(columns=sorted(most))
        sessions = sessions.reset_index(drop=True)
        moodle = people.rename(columns={"id": "Username"}).drop(columns="lms").join(sessions)
        moodle.to_csv("moodle.csv", index=False)
        columns = {"Student": people["Last name"] + ", " + people["First name"]}
        columns |= {"ID": people["lms"], "SIS Login ID": people["id"], "Section": ""}
        canvas = pd.DataFrame(columns).join(sessions)
        points_possible = pd.DataFrame([{"Student": "    Points Possible"} | most])
        table = pd.concat([points_possible, canvas]).reindex(columns=canvas.columns)
        table.to_csv("canvas.csv", index=False)


def _ungraded(submission):
    """The check cells that neither nbgrader nor a person gave a grade, in words."""
    grades = [grade for part in submission.notebooks for grade in part.grades]
    lacking = [x for x in grades if x.auto_score is None and x.manual_score is None]
    return ", ".join(sorted(f"{x.name} of {x.notebook.name}" for x in lacking))
