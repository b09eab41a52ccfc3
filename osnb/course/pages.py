"""What a copy of the course says about itself, and nbgrader's settings for the lecturer's."""

START = """
    make lab                        # sets up .venv here, once, and opens JupyterLab

Without a network, if a folder `wheels` is here:

    PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels make lab

Then `.venv/bin/osnb doctor` says whether all is ready.

Without `make`, as on Windows, where nobody has tried these lines (elsewhere write `python3.11` for
`py -3.11` and `.venv/bin/python` for `.venv\\Scripts\\python`):

    py -3.11 -m venv .venv
    .venv\\Scripts\\python -m pip install -r requirements.lock
    .venv\\Scripts\\python -m pip install --no-deps --no-build-isolation -e .
    .venv\\Scripts\\python -m osnb.doctor
    .venv\\Scripts\\python -m jupyterlab

Without a network, write `pip install --no-index --find-links wheels` in the second and third line.
On Windows choose a folder with a short path, such as `C:\\osnb`. It needs Python 3.11.5 or newer;
wheels fit the Python in their names alone: `cp311` is 3.11.

The folder is a project of its own: the package `osnb` is installed from here, so notebooks read
`params/` and `figures/` of this folder and write to `runs/` in it. In an environment where `osnb`
was installed from another folder, notebooks work too, but read and write there; `osnb status`
says where. `OSNB_OUT=FOLDER` moves what is written.
"""

TITLE = "# Open-set recognition: the students' copy\n"

BEGIN = """
Begin with `notebooks/README.md`, or with `notebooks/00_tour.ipynb`. In a *build* exercise write
your code in the place of `...`; the cell below it says whether it is right. To hand a notebook
in, save it under its own name.
"""

STUDENT = f"{TITLE}{START}{BEGIN}"

BUNDLE = f"""{TITLE}
## Is it whole?

    python3 osnb/course/whole.py     # on Windows: py osnb\\course\\whole.py

holds every file against `SHA256SUMS`; it needs nothing but Python. Ask before you begin: a notebook
that was saved is no longer the same.

## Set up
{START}
## Begin
{BEGIN}
## For the lecturer: wheels

`requirements.lock` lists every package; what else Windows or macOS need, pip finds. So fetch wheels
where there is a network, on a machine with the students' system and version of Python, each system
in turn into the same folder:

    python -m pip download -r requirements.lock -d wheels --only-binary :all:

On Linux add `--extra-index-url https://download.pytorch.org/whl/cpu`: the CUDA build of torch needs
several GB more. From another system, wheels for Linux and Python 3.11 (not for Windows or macOS,
whose own packages pip would leave out):

    python -m pip download -r requirements.lock -d wheels --only-binary :all: \\
      --python-version 3.11.9 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \\
      --platform manylinux_2_17_x86_64 --platform manylinux1_x86_64 \\
      --extra-index-url https://download.pytorch.org/whl/cpu

Then pack the folder with the rest; what lacks a wheel is named:

    osnb course --bundle --wheels wheels --out FILE.zip
"""

TEACHER = f"""# Open-set recognition: the lecturer's copy

It holds every solution, hidden test and answer. Do not pass it on: students get what
`osnb course --out FOLDER` writes.
{START}
## Grading

The folder is a course of nbgrader, with one assignment, `notebooks`:

    .venv/bin/nbgrader generate_assignment notebooks     # once: fills gradebook.db
    # put what students hand in into submitted/STUDENT/notebooks/*.ipynb
    .venv/bin/nbgrader autograde notebooks               # --notebook 01_curves: only that one
    .venv/bin/nbgrader generate_feedback notebooks
    .venv/bin/nbgrader export                            # grades.csv

`generate_assignment` also writes `release/notebooks`, which holds the same cells as the students'
copy, and not `notebooks/LECTURER.md`, which says how points are counted. Hidden tests and keys are
taken out of `feedback/STUDENT/notebooks/`, which students may have; of an error in a cell with
hidden tests only what it says stays there. `autograded/` and `gradebook.db` hold all of them.

Students' code is run on the machine that grades it: use one that holds nothing else.
"""

CONFIG = '''"""Settings of nbgrader: notebooks/ is the assignment, its stub is `...`."""

import os
import sys
from pathlib import Path

from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.converters import GenerateAssignment, GenerateFeedback
from nbgrader.preprocessors import NbGraderPreprocessor

from osnb.course.feedback import without_hidden_tests

# nbgrader calls alembic by its name, which is found only where the environment is activated
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


class HideTests(NbGraderPreprocessor):
    """Students get their feedback without hidden tests and keys of quizzes."""

    def preprocess(self, nb, resources):
        return without_hidden_tests(nb), resources


c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "osnb"
c.CourseDirectory.source_directory = "."
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "LECTURER.md"]
c.ClearSolutions.code_stub = {"python": "..."}
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"teacher"}
steps = GenerateAssignment.preprocessors.default_args[0]
c.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *steps]
steps = GenerateFeedback.preprocessors.default_args[0]
c.GenerateFeedback.preprocessors = [HideTests, *steps]
c.ExecutePreprocessor.timeout = 600
'''

REMOVED = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Not in the students' bundle</title>
<p>This page of the report shows solutions, so the students' bundle leaves it out.
The notebook itself is in <code>notebooks/</code>.</p></html>
"""

NO_SEARCH = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>No search in the students' bundle</title>
<p>The students' bundle has no search: its index would hold the words of pages left out.
<a href="index.html">All pages</a></p></html>
"""
