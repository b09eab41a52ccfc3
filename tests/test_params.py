"""Every params file is one experiment that its notebook understands, and says what it costs."""

import re

import pytest

from osnb import repro, run

NOTEBOOKS = [
    *("00_tour", "01_curves", "10_palechor_protocols", "11_palechor_losses"),
    *("12_palechor_train", "13_palechor_results", "14_palechor_capstone"),
    *("20_vaze_splits", "21_vaze_train", "22_vaze_correlation", "23_vaze_max_logit"),
    *("24_vaze_semantic_shift", "25_vaze_feature_norms", "26_vaze_ood"),
    "27_vaze_capstone",
    *("30_kim_benchmark", "31_kim_train", "32_kim_tasks", "33_kim_unified", "34_kim_capstone"),
    "40_cross",
]
SIZES = ("mini", "tiny", "paper")
FILES = sorted((repro.root() / "params").glob("*/*"))
SOURCES = sorted((repro.root() / "notebooks").glob("*.ipynb"))


def test_every_notebook_has_a_folder_of_params_and_every_folder_a_notebook():
    assert sorted({file.parent.name for file in FILES}) == NOTEBOOKS
    assert [source.stem for source in SOURCES] == NOTEBOOKS


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_params_file_is_what_its_notebook_declares(file):
    assert file.suffix == ".yaml"
    plan = run.plan(file)  # refuses unknown keys, other types, equal keys and another name
    assert plan.run == file.stem
    assert plan.parameters["size"] in SIZES
    assert file.stem.split("_")[0] == plan.parameters["size"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_params_file_opens_with_its_device_and_its_time(file):
    lines = file.read_text().splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    comment = " ".join(lines[:end])
    assert re.search(r"\b(CPU|GPU)s?\b", comment), f"no device in {comment!r}"
    time = r"\b(second|minute|hour|day|week)s?\b|not measured"
    assert re.search(time, comment), f"no time in {comment!r}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_defaults_of_a_notebook_are_a_params_file_of_the_miniature(source):
    defaults = repro.declared(source)
    file = repro.root() / "params" / source.stem / f"{defaults['run']}.yaml"
    assert run.plan(file).parameters == defaults
    assert defaults["size"] == "mini"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_no_two_params_files_of_a_notebook_are_one_experiment(source):
    seen = {}
    for file in [file for file in FILES if file.parent.name == source.stem]:
        parameters = run.plan(file).parameters
        content = repr(sorted((parameters | {"run": ""}).items()))
        assert content not in seen, f"{file} repeats {seen[content]}"
        seen[content] = file


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent.name.endswith("_train")], ids=lambda x: x.stem
)
def test_a_training_run_says_its_size_because_results_are_collected_by_it(file):
    assert "size" in repro.params(file)
