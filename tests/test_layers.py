"""Data flows one way: what each room of the package may import, and from where."""

import ast
import sys

import pytest

from osnb.repro import PACKAGE

GROUND = {"labels", "outputs", "catalogue", "repro", "hierarchy"}
DATA = {"labels", "catalogue", "hierarchy"}  # ground without what only training needs

# room: (rooms of osnb, packages outside, packages outside that only a function may import)
ROOMS = {
    "labels": (set(), {"numpy"}, set()),
    "outputs": (set(), set(), set()),
    "catalogue": (set(), set(), set()),
    "repro": (set(), set(), {"numpy", "yaml"}),
    "hierarchy": ({"catalogue"}, set(), set()),
    "vision": (set(), {"torch", "torchvision"}, set()),
    "wordnet": ({"repro", "hierarchy"}, set(), {"nltk"}),
    "protocols": (DATA | {"tables"}, {"numpy", "pandas"}, {"sklearn"}),
    "datasets": (
        GROUND | {"vision"},
        {"numpy", "pandas", "torch", "PIL", "simplejpeg"},
        {"torchvision", "sklearn", "scipy", "matplotlib", "tqdm"},
    ),
    "augment": ({"catalogue"}, {"torch"}, set()),
    "models": (GROUND | {"vision"}, {"torch"}, {"timm"}),
    "losses": (GROUND, {"torch"}, set()),
    "train": (GROUND, {"torch", "numpy"}, {"pandas", "tqdm", "IPython", "cloudpickle"}),
    "methods": (GROUND | {"losses", "models", "train", "augment"}, {"numpy", "torch"}, {"pandas"}),
    "scores": (GROUND, {"numpy"}, {"scipy"}),
    "metrics": (set(), {"numpy"}, set()),
    "tables": ({"labels", "repro"}, {"numpy", "pandas", "pyarrow"}, set()),
    "claims": ({"catalogue", "metrics", "tables"}, {"numpy", "pandas"}, set()),
    "plots": ({"metrics"}, {"numpy", "pandas", "matplotlib", "seaborn"}, set()),
    "widgets": ({"metrics", "plots"}, {"numpy", "pandas", "matplotlib", "ipywidgets"}, {"IPython"}),
    "exercise": (set(), {"numpy"}, set()),
    "gallery": ({"catalogue", "repro", "tables"}, {"pandas"}, set()),
    "report": (
        {"claims", "gallery", "publish", "record", "repro", "verify"},
        {"filelock", "jinja2", "pandas"},
        set(),
    ),
    "record": ({"repro"}, set(), {"psutil", "filelock"}),
    "publish": ({"repro"}, set(), set()),
    "verify": ({"repro", "record", "publish"}, set(), {"pyarrow"}),
    "archive": ({"repro", "record", "publish", "tables", "verify"}, set(), {"rocrate", "pyarrow"}),
    "capstone": (
        {"augment", "datasets", "labels", "losses", "metrics", "models", "outputs", "protocols"}
        | {"repro", "scores", "train"},
        {"numpy", "pandas", "torch"},
        set(),
    ),
    "course": ({"repro", "archive"}, set(), {"nbformat", "nbconvert", "nbgrader"}),
    "run": (
        {"repro", "record", "publish"},
        {"yaml"},
        {"papermill", "jupyter_client", "pyarrow", "filelock"},
    ),
    "kernel": (set(), {"ipykernel"}, set()),
    "batch": (
        {"repro", "record", "run"},
        set(),
        {"distributed", "dask_jobqueue", "yaml"},
    ),
    "bench": (
        set(),
        {"numpy"},
        {"rich", "torch", "sklearn", "PIL", "pyarrow"}
        | {"osr_metrics", "pytorch_ood", "torch_uncertainty", "torchmetrics"},
    ),
    "doctor": ({"repro", "train", "vision"}, set(), {"torch", "jupyter_client"}),
    "index": ({"repro", "gallery"}, {"pandas"}, set()),
    "cli": (set(), {"typer"}, {"rich", "yaml", "pyarrow"}),
}
ANY_LATER = {"bench", "cli"}  # import any room, inside functions
FILES = {
    path: path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}


def imported(path, *, at_once=False):
    """Full names of the modules that a file imports; `at_once`: outside of functions."""
    tree = ast.parse(path.read_text())
    later = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    hidden = {id(node) for function in later for node in ast.walk(function)} if at_once else set()
    names = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def split(names):
    """(rooms of osnb, packages outside) among full module names, the standard library left out."""
    parts = [name.split(".") for name in names]
    rooms = {part[1] for part in parts if part[0] == "osnb"}
    outside = {part[0] for part in parts if part[0] not in {*sys.stdlib_module_names, "osnb"}}
    return rooms, outside


def test_every_room_has_a_row_and_every_row_a_room():
    assert set(FILES.values()) == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_what_its_row_says(path):
    room = FILES[path]
    allowed_rooms, at_once, later = ROOMS[room]
    rooms, outside = split(imported(path))
    if room not in ANY_LATER:
        assert rooms - {room} <= allowed_rooms
    assert outside <= at_once | later
    assert split(imported(path, at_once=True))[1] <= at_once


@pytest.mark.parametrize("room", sorted(ANY_LATER))
def test_what_imports_any_room_does_so_only_inside_functions(room):
    for path in [path for path, of in FILES.items() if of == room]:
        assert split(imported(path, at_once=True))[0] <= {room}


def test_importing_the_package_imports_no_room():
    assert imported(PACKAGE / "__init__.py") == set()


@pytest.mark.parametrize("room", ["scores", "metrics", "tables", "plots", "protocols", "claims"])
def test_what_a_results_notebook_needs_never_reaches_torch(room):
    reached, queue = set(), [room]
    while queue:
        room = queue.pop()
        reached.add(room)
        queue += ROOMS[room][0] - reached
    assert all("torch" not in ROOMS[room][1] | ROOMS[room][2] for room in reached)


def test_only_the_guard_imports_torchvision_and_timm_comes_after_it():
    for path, room in FILES.items():
        names = imported(path)
        if room != "vision":
            assert not {name for name in names if name.split(".")[0] == "torchvision"}, path
        if any(name.split(".")[0] == "timm" for name in names):
            assert any(name.startswith("osnb.vision") for name in names), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_are_found_by_reading_the_code(path):
    """What the hash of a run's code relies on: nothing is looked up, imported or run by text."""
    if FILES[path] == "bench":
        return  # no run depends on it
    text = path.read_text()
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert not names & {"eval", "exec", "globals", "vars", "__import__", "import_module", "setattr"}
    assert not {name for name in imported(path) if name.endswith(".*") or "import_module" in name}
