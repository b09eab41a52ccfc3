"""The notebook guide, as far as a machine can see it: anatomy, parameters, code and outputs."""

import ast
import base64
import json
import re

import nbformat
import pytest

from osnb import repro

SOURCES = sorted((repro.root() / "notebooks").glob("*.ipynb"))
NAMES = [
    *("00_tour", "01_curves", "10_palechor_protocols", "11_palechor_losses"),
    *("12_palechor_train", "13_palechor_results", "14_palechor_capstone"),
    *("20_vaze_splits", "21_vaze_train", "22_vaze_correlation", "23_vaze_max_logit"),
    *("24_vaze_semantic_shift", "25_vaze_feature_norms", "26_vaze_ood"),
    "27_vaze_capstone",
    *("30_kim_benchmark", "31_kim_train", "32_kim_tasks", "33_kim_unified", "34_kim_capstone"),
    "40_cross",
]
MEASURED = r"Measured: about ([\d.]+) seconds? and ([\d.]+) GB on \w[^.]*\."
ASKS = "**Predict"
EXERCISE = r"^\d\. \*(read|change|build)\*(.*?)(?=^\d\. |\Z)"
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


def before_quiz(cells):
    """The cells that come before the quiz; all if there is none."""
    starts = (i for i, (_, text, *_) in enumerate(cells) if text.startswith("## Quiz"))
    return cells[: next(starts, len(cells))]


def graded(cell):
    """Whether nbgrader knows a cell."""
    return "nbgrader" in cell["metadata"]


def exercises(notebook):
    """(grade_id, text of the solution cell, text of the check cell below it) of each."""
    cells = [x for x in notebook["cells"] if graded(x)]
    texts = ["".join(x["source"]) for x in cells]
    names = [x["metadata"]["nbgrader"]["grade_id"] for x in cells]
    assert names[1::2] == [f"{name}-check" for name in names[::2]]
    return list(zip(names[::2], texts[::2], texts[1::2], strict=True))


def tree(cell):
    """A code cell, parsed."""
    return ast.parse("".join(cell["source"]))


def bound(cell):
    """Names that a code cell defines at its top."""
    names = set()
    for node in ast.walk(tree(cell)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return names


def text_of(output):
    """Everything in an output that is text, images left out."""
    data = {"stream": output.get("text", "")} | output.get("data", {})
    return "\n".join("".join(x) for kind, x in data.items() if not kind.startswith("image/"))


def test_the_notebooks_of_all_papers_are_here():
    assert [source.stem for source in SOURCES] == NAMES


# Anatomy


def test_a_notebook_has_20_to_35_cells_before_its_quiz_about_half_of_them_text(cells):
    kinds = [kind for kind, *_ in before_quiz(cells)]
    assert 20 <= len(kinds) <= 35
    assert 0.35 <= kinds.count("markdown") / len(kinds) <= 0.65


def test_the_title_is_a_section_and_its_claim(cells):
    kind, text, *_ = cells[0]
    assert kind == "markdown"
    assert re.match(r"# [^#\n]+: [^\n]+\n\n\S", text)


def test_below_the_title_stand_aims_needs_and_measured_time_and_memory(cells):
    assert "**You will learn**" in cells[0][1]
    assert "**You need**" in cells[0][1]
    found = re.search(MEASURED, " ".join(cells[0][1].split()))
    assert found
    assert float(found[1]) <= 60
    assert float(found[2]) <= 2


def test_the_last_three_sections_are_paper_and_ours_then_exercises_then_quiz(words):
    titles = [line for text in words for line in text.splitlines() if line.startswith("## ")]
    assert titles[-3:] == ["## Paper and ours", "## Exercises", "## Quiz"]


def test_the_reader_predicts_at_least_twice_and_each_time_before_a_cell_is_run(cells):
    before = before_quiz(cells)
    asked = [i for i, (kind, text, *_) in enumerate(before) if kind == "markdown" and ASKS in text]
    assert sum(before[i][1].count(ASKS) for i in asked) >= 2
    kinds = "".join(kind[0] for kind, *_ in before)
    assert all("c" in kinds[i + 1 :] and "m" in kinds[kinds.index("c", i) :] for i in asked)


def test_three_to_five_exercises_say_what_to_do_and_a_build_checks_itself(words, code):
    kinds = re.findall(r"^\d\. \*(read|change|build)\*", "\n".join(words), re.M)
    assert 3 <= len(kinds) <= 5
    assert "build" in kinds
    checks = sum(text.count("exercise.check(") for text, *_ in code)
    assert checks == kinds.count("build")


def test_read_and_change_exercises_say_how_to_tell_a_right_answer(words):
    text = "\n".join(words).partition("## Exercises")[2].partition("## Quiz")[0]
    for kind, asked in re.findall(EXERCISE, text, re.M | re.S):
        assert kind == "build" or "*Check:*" in asked, asked


def test_every_build_exercise_has_a_solution_a_check_and_a_hidden_test(notebook):
    pairs = [x for x in exercises(notebook) if not x[0].startswith("quiz")]
    assert pairs
    for name, solution, graded in pairs:
        assert "### BEGIN SOLUTION" in solution, name
        shown, _, hidden = graded.partition("### BEGIN HIDDEN TESTS")
        asked = shown.count("exercise.check(")
        assert asked
        assert hidden.count("exercise.require(") == asked, name
        assert len(re.findall(r"\bseed=", hidden)) >= asked, f"{name} has no seed of its own"
        assert solution.count("### BEGIN SOLUTION") == asked, name


def test_graded_cells_are_as_nbgrader_wants_them(notebook):
    from nbgrader.nbgraderformat.v3 import MetadataValidatorV3

    nb = nbformat.from_dict(notebook)
    MetadataValidatorV3().validate_nb(nb)
    names = [x["metadata"]["nbgrader"]["grade_id"] for x in notebook["cells"] if graded(x)]
    assert all(re.fullmatch(r"[a-z0-9_-]+", name) for name in names)
    for cell in notebook["cells"]:
        of = cell["metadata"].get("nbgrader", {"solution": False, "grade": False, "locked": True})
        text = "".join(cell["source"])
        assert of["solution"] == ("BEGIN SOLUTION" in text), text
        assert of["grade"] == ("BEGIN HIDDEN TESTS" in text), text
        assert of["locked"] != of["solution"], text


def test_the_quiz_has_five_questions_of_four_options_a_key_and_answers(notebook):
    words, answers, check, teacher = notebook["cells"][-4:]
    text = "".join(words["source"])
    assert text.startswith("## Quiz\n")
    assert re.findall(r"^(\d)\. ", text, re.M) == list("12345")
    assert re.findall(r"^   - ([a-d])\) \S", text, re.M) == list("abcd") * 5
    assert answers["metadata"]["tags"] == check["metadata"]["tags"] == ["course"]
    (key,) = re.findall(r'^answers = "([a-d]{5})"$', "".join(answers["source"]), re.M)
    assert "".join(answers["source"]).startswith('answers = ""  # ')
    assert len(set(key)) >= 3
    assert key != "abcda"  # the example that students see
    assert f'exercise.quiz(answers, questions=5, key="{key}")' in "".join(check["source"])
    assert check["metadata"]["nbgrader"]["points"] == 5
    assert teacher["metadata"]["tags"] == ["teacher"]
    assert "".join(teacher["source"]).startswith("**Answers.**")


def test_no_cell_uses_a_name_that_only_the_course_defines(notebook):
    """Cells of the course are left out of the hash of a run's code, so nothing may hang on them."""
    code = [x for x in notebook["cells"] if x["cell_type"] == "code"]
    course = [x for x in code if "course" in x["metadata"].get("tags", [])]
    own = set().union(*(bound(x) for x in course)) if course else set()
    rest = [x for x in code if x not in course]
    for cell in rest:
        names = {x.id for x in ast.walk(tree(cell)) if isinstance(x, ast.Name)}
        assert not names & own - set().union(*map(bound, rest)), "".join(cell["source"])
    first = next((i for i, x in enumerate(code) if x in course), len(code))
    assert all(x in course for x in code[first:])  # so none can change what another cell reads


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


def test_a_cell_is_no_longer_than_15_lines_without_solutions_and_hidden_tests(source, code):
    for text, tags, _ in code:
        lines = repro.notebooks.cleared(text, name=source.name).strip().splitlines()
        assert "parameters" in tags or len(lines) <= 15, text


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


def test_widgets_show_and_give_nothing_back(code):
    """So that no number follows from them: the hash of a run leaves them out."""
    for text, *_ in code:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
                assert "widgets" not in used, text


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
