"""Grades in the columns that learning platforms import: `nbgrader export --exporter` names it."""

import pandas as pd
from nbgrader.plugins import ExportPlugin


class Platforms(ExportPlugin):
    """A row a learner and a column a session: moodle.csv and canvas.csv, in the working folder.

    Moodle takes any column that names the learner and maps the others to grade items; Canvas finds
    learners by its own ID (nbgrader's lms_user_id) or by SIS Login ID, and wants the points
    possible in the row below the heads. A session that was not handed in is empty.
    """

    def export(self, gradebook):
        """Write both files from a gradebook of nbgrader."""
        points, most = {}, {}
        for assignment in gradebook.assignments:
            most[assignment.name] = assignment.max_score
            for submission in assignment.submissions:
                points.setdefault(assignment.name, {})[submission.student.id] = submission.score
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
