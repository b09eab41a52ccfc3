"""What a copy of the course says about itself, and nbgrader's settings for the lecturer's."""

START = """
    make lab                        # sets up .venv here, once, and opens JupyterLab

Without a network, if a folder `wheels` is here:

    PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/wheels" make lab

The folder is a project of its own: the package `osnb` is installed from here, so notebooks read
`params/` and `figures/` of this folder and write to `runs/` in it. In an environment where `osnb`
was installed from another folder, notebooks work too, but read and write there; `osnb status`
says where. `OSNB_OUT=FOLDER` moves what is written.
"""

STUDENT = f"""# Open-set recognition: the students' copy
{START}
Begin with `notebooks/README.md`, or with `notebooks/00_tour.ipynb`. In a *build* exercise write
your code in the place of `...`; the cell below it says whether it is right. To hand a notebook
in, save it under its own name.
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
copy. A build exercise gives one point, a quiz one for each right answer.
Students' code is run on the machine that grades it: use one that holds nothing else.
"""

CONFIG = '''"""Settings of nbgrader: notebooks/ is the assignment, its stub is `...`."""

import os
import sys
from pathlib import Path

from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.converters import GenerateAssignment

# nbgrader calls alembic by its name, which is found only where the environment is activated
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "osnb"
c.CourseDirectory.source_directory = "."
c.ClearSolutions.code_stub = {"python": "..."}
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {"teacher"}
steps = GenerateAssignment.preprocessors.default_args[0]
c.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *steps]
c.ExecutePreprocessor.timeout = 600
'''

BUNDLE = """
## Without a network

`requirements.lock` lists every package. Where there is a network, for the students' platforms
(win_amd64, macosx_14_0_arm64, manylinux_2_28_x86_64, ...) and Python version:

    pip download --requirement requirements.lock --dest wheels --only-binary :all: \\
      --platform manylinux_2_28_x86_64 --python-version 3.11 \\
      --extra-index-url https://download.pytorch.org/whl/cpu
    osnb course --bundle --wheels wheels --out FILE.zip     # packs the folder with the rest

## Is it whole?

    sha256sum --check --quiet SHA256SUMS     # or: osnb course --check FOLDER_OR_ZIP
"""

REMOVED = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Not in the students' bundle</title>
<p>This page of the report shows solutions, so the students' bundle leaves it out.
The notebook itself is in <code>notebooks/</code>.</p></html>
"""
