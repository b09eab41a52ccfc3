"""What an import costs, told by what it brings along; and the guard around torchvision."""

import subprocess
import sys

import pytest

HEAVY = {
    *("torch", "torchvision", "timm", "numpy", "pandas", "pyarrow", "scipy", "sklearn"),
    *("matplotlib", "seaborn", "ipywidgets", "IPython", "papermill", "nbformat", "nltk", "yaml"),
}
FILE = "from osnb.base import workbook\n"
FILE += "file = workbook.root() / 'params/12_palechor_train/mini_p3_softmax.yaml'\n"


def python(code, **options):
    """Run code in a new Python; what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def brought(statement):
    """Names of the top-level modules that are loaded after a statement in a new Python."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    return set(python(code).split())


# what is done in a new Python, and what is not imported by then
WITHOUT = {
    "the command line": ("from osnb.book import cli", HEAVY),
    "the doctor": ("from osnb.teach import doctor", HEAVY | {"rich", "typer", "jupyter_client"}),
    "showing the pad": ("from osnb.teach import touch; touch.page('pad')", {"torch"}),
    "a plan": (
        FILE + "from osnb.book import run; run.plan(file, {'epochs': 20})",
        HEAVY - {"yaml"},
    ),
    "a refused command": (
        f"{FILE}from osnb.book.cli import app\ntry: app(['run', str(file), '-p', 'sed=1'])\n"
        "except SystemExit as end: assert end.code == 2",
        HEAVY - {"yaml"},
    ),
    "a refused experiment": (
        "from osnb.experiment import Experiment\n"
        "try: Experiment.named('imagenet200', method='softmax', overrides='beta=9')\n"
        "except ValueError: refused = True\nassert refused",
        HEAVY - {"yaml"},
    ),
    "what kernels share": (
        "import importlib; from osnb.book.kernel import SLOW\n"
        "assert [importlib.import_module(name) for name in SLOW]",
        {"ipywidgets"},  # it asks for the notebook, and is kept for none
    ),
}


@pytest.mark.parametrize(("statement", "heavy"), WITHOUT.values(), ids=WITHOUT)
def test_a_statement_comes_to_its_end_without_what_it_does_not_need(statement, heavy):
    assert not brought(statement) & heavy


def test_a_results_notebook_starts_without_torch():
    loaded = brought(
        "from osnb import book, metrics, plots, protocols, scores\n"
        "from osnb.evidence import claims, tables"
    )
    assert not loaded & {"torch", "torchvision", "timm", "sklearn"}
    assert {"numpy", "pandas", "matplotlib"} <= loaded


def test_training_brings_along_what_torch_does_and_networks_neither_torchvision_nor_timm():
    code = "import sys, torch\nbefore = {*sys.modules}\nfrom osnb import train\n"
    told = "print(*{name.split('.')[0] for name in {*sys.modules} - before})"
    training, networks = python(f"{code}{told}\nfrom osnb import models\n{told}").splitlines()
    assert {*training.split()} & HEAVY <= {"numpy"}
    assert not {*networks.split()} & {"torchvision", "timm"}


FAKE = {
    "works": "",
    "cannot_load_its_operators": """
import torch
try:
    torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "Meta")
except RuntimeError:
    raise RuntimeError("operator torchvision::nms does not exist")
""",
    "has_another_fault": "raise RuntimeError('cuda driver too old')",
}


GUARDED = """
import os, sys, torch, osnb.datasets
for folder in {folders}:
    if os.fork():
        os.wait()
        continue
    sys.path.insert(0, folder)
    try:
        from osnb.datasets import vision
        print(len(vision._declared), vision.torchvision.__file__)
    except RuntimeError as fault:
        print(fault)
    break
"""


def test_the_guard_declares_operators_where_they_are_missing_and_hides_no_other_fault(tmp_path):
    """Each in a process of its own, which one that has imported torch forks."""
    files = [tmp_path / name / "torchvision" / "__init__.py" for name in FAKE]
    for file, code in zip(files, FAKE.values(), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(code)
    told = python(GUARDED.format(folders=[str(file.parents[1]) for file in files]))
    assert told.splitlines() == [f"0 {files[0]}", f"1 {files[1]}", "cuda driver too old"]
