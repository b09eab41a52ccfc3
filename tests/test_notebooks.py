"""The notebook guide, as far as a machine can see it: anatomy, parameters, code and outputs."""

import ast
import base64
import json
import re

import pytest

from osnb import repro

SOURCES = sorted((repro.root() / "notebooks").glob("*.ipynb"))
NAMES = [
    *("00_tour", "01_curves", "10_palechor_protocols", "11_palechor_losses"),
    *("12_palechor_train", "13_palechor_results"),
    *("20_vaze_splits", "21_vaze_train", "22_vaze_correlation", "23_vaze_max_logit"),
    *("24_vaze_semantic_shift", "25_vaze_feature_norms", "26_vaze_ood"),
    "30_kim_benchmark",
    "31_kim_train",
    "32_kim_tasks",
    "33_kim_unified",
    "40_cross",
]
CHECKED = "nbval-check-output"
UNSTABLE = {
    "an absolute path": r"(?<![\w.:/<])/(?:[\w.-]+/)+[\w.-]+",
    "a date": r"\b20\d\d-\d\d-\d\d\b",
    "a clock": r"\b\d\d:\d\d:\d\d\b",
    "an address": r"0x[0-9a-f]{6,}",
    "a random id": r'id="T_[0-9a-f]{5}',
    "a progress bar": r"\d+%\||it/s",
    "a fourth decimal": r"\d\.\d{4,}",
}


@pytest.fixture(params=SOURCES, ids=lambda source: source.stem)
def source(request):
    return request.param


@pytest.fixture
def notebook(source):
    return json.loads(source.read_text())


@pytest.fixture
def cells(notebook):
    """(kind, text, tags, outputs) of each cell."""
    return [
        (x["cell_type"], "".join(x["source"]), x["metadata"].get("tags", []), x.get("outputs", []))
        for x in notebook["cells"]
    ]


@pytest.fixture
def code(cells):
    """(text, tags, outputs) of each code cell."""
    return [(text, tags, outputs) for kind, text, tags, outputs in cells if kind == "code"]


@pytest.fixture
def words(cells):
    """Text of each markdown cell."""
    return [text for kind, text, _, _ in cells if kind == "markdown"]


def text_of(output):
    """Everything in an output that is text, images left out."""
    data = {"stream": output.get("text", "")} | output.get("data", {})
    return "\n".join("".join(x) for kind, x in data.items() if not kind.startswith("image/"))


def test_the_notebooks_of_the_first_paper_are_here():
    assert [source.stem for source in SOURCES] == NAMES


# Anatomy


def test_a_notebook_has_20_to_35_cells_about_half_of_them_text(cells, words):
    assert 20 <= len(cells) <= 35
    assert 0.35 <= len(words) / len(cells) <= 0.65


def test_the_title_is_a_section_and_its_claim(cells):
    kind, text, *_ = cells[0]
    assert kind == "markdown"
    assert re.match(r"# [^#\n]+: [^\n]+\n\n\S", text)


def test_below_the_title_stand_device_and_time(cells):
    assert re.search(r"\b(CPU|GPU)\b", cells[0][1])
    assert re.search(r"\b(second|minute|hour|day)s?\b", cells[0][1])


def test_the_last_two_sections_are_paper_and_ours_then_exercises(words):
    titles = [line for text in words for line in text.splitlines() if line.startswith("## ")]
    assert titles[-2:] == ["## Paper and ours", "## Exercises"]


def test_three_to_five_exercises_say_what_to_do_and_a_build_checks_itself(words, code):
    kinds = re.findall(r"^\d\. \*(read|change|build)\*", "\n".join(words), re.M)
    assert 3 <= len(kinds) <= 5
    checks = sum(text.count("exercise.check(") for text, *_ in code)
    assert checks == kinds.count("build")


# Parameters


def test_parameters_are_annotated_literals_with_a_comment_each(source, code):
    defaults = repro.declared(source)  # one tagged cell, literals only
    (text,) = [text for text, tags, _ in code if "parameters" in tags]
    lines, statements = text.splitlines(), ast.parse(text).body
    assert len(statements) == len(defaults)
    for statement in statements:
        assert isinstance(statement, ast.AnnAssign), ast.unparse(statement)
        name = statement.target.id
        annotation = ast.unparse(statement.annotation).split("[")[0]
        assert annotation == type(defaults[name]).__name__, name
        comment = lines[statement.end_lineno - 1][statement.end_col_offset :]
        assert re.match(r"  # \S", comment), f"{name} has no comment"


def test_parameters_are_few_and_three_of_them_everywhere(source):
    defaults = repro.declared(source)
    assert list(defaults)[:3] == ["run", "size", "seed"]
    assert len(defaults) <= (100 if source.stem.endswith("_train") else 12)


def test_the_run_is_opened_under_the_name_of_the_notebook(source, code):
    calls = re.findall(r'repro\.begin\("(\w+)", globals\(\)\)', "\n".join(x for x, *_ in code))
    assert calls == [source.stem]


# Code


def test_a_cell_is_no_longer_than_15_lines(code):
    for text, tags, _ in code:
        assert "parameters" in tags or len(text.splitlines()) <= 15, text


def test_code_is_python_without_shell_pip_try_or_star(code):
    for text, *_ in code:
        for node in ast.walk(ast.parse(text)):  # a shell line or a magic is no Python
            assert not isinstance(node, ast.Try | ast.TryStar), text
            assert not isinstance(node, ast.ImportFrom) or node.names[0].name != "*", text
        assert "pip install" not in text
        assert "get_ipython" not in text


def test_no_loop_runs_over_epochs_and_no_branch_over_parameters(source, code):
    names = set(repro.declared(source))
    for text, *_ in code:
        for node in ast.parse(text).body:
            if isinstance(node, ast.For | ast.While):
                assert "epoch" not in ast.unparse(node).split("\n")[0], text
            if isinstance(node, ast.If):
                used = {x.id for x in ast.walk(node.test) if isinstance(x, ast.Name)}
                assert not used & names, text


def test_torchvision_comes_through_its_guard(code):
    for text, *_ in code:
        assert not re.search(r"^\s*(import|from) (torchvision|timm)\b", text, re.M)


# Outputs


def test_the_kernel_is_python3_and_nothing_of_papermill_is_left(source, notebook):
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert '"papermill"' not in source.read_text()
    assert "injected-parameters" not in source.read_text()


def test_cells_were_executed_in_order_from_1(notebook):
    counts = [x["execution_count"] for x in notebook["cells"] if x["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_no_cell_complained_or_failed(code):
    for text, _, outputs in code:
        for output in outputs:
            assert output["output_type"] != "error", text
            assert output.get("name") != "stderr", text


def test_images_are_small(code):
    for text, _, outputs in code:
        for output in outputs:
            for kind, content in output.get("data", {}).items():
                if kind.startswith("image/"):
                    raw = "".join(content)
                    size = len(raw) if "svg" in kind else len(base64.b64decode(raw))
                    assert size < 200_000, text


def test_a_checked_cell_has_an_output(code):
    for text, tags, outputs in code:
        assert CHECKED not in tags or outputs, f"nothing to check in:\n{text}"


@pytest.mark.parametrize("what", UNSTABLE)
def test_a_checked_output_holds_nothing_that_changes(code, what):
    for _, tags, outputs in code:
        for output in outputs if CHECKED in tags else []:
            found = re.search(UNSTABLE[what], text_of(output))
            assert not found, f"{what}, {found[0]!r}, in:\n{text_of(output)}"


def test_no_output_prints_where_an_object_lies(code):
    for text, _, outputs in code:
        for output in outputs:
            assert not re.search(r" at 0x[0-9a-f]{6,}", text_of(output)), text
