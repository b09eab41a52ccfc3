"""Files are written whole, hashes see what counts, and a run is opened under its own name."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from osnb import repro
from osnb.repro import reach

TRAININGS = sorted((repro.root() / "notebooks").glob("*_train.ipynb"))
TRAINING = repro.root() / "notebooks" / "12_palechor_train.ipynb"
SPLITS = ("train", "test")


def test_the_root_is_found_from_any_folder(tmp_path, monkeypatch):
    before = repro.root()
    monkeypatch.chdir(tmp_path)
    assert repro.root() == before
    assert (before / "pyproject.toml").is_file()


def test_outside_of_a_project_the_root_is_missed_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(repro, "PACKAGE", tmp_path / "site-packages" / "osnb")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="work in a clone"):
        repro.root()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks").mkdir()
    assert repro.root() == tmp_path


def test_results_go_where_the_environment_says(project, tmp_path, monkeypatch):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path / "elsewhere"))
    assert repro.out() == tmp_path / "elsewhere"
    monkeypatch.setenv("OSNB_OUT", "")
    assert repro.out() == project.folder


# Writing


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "scores.csv"
    with repro.writing(path) as aside:
        aside.write_text("whole")
        assert aside.parent == path.parent
        assert aside.suffix == ".csv"
        assert not path.exists()
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["scores.csv"]


def test_after_an_error_the_old_file_is_there_and_the_part_is_gone(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")

    def write():
        with repro.writing(path) as aside:
            aside.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["scores.csv"]


def test_a_killed_writer_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom osnb import repro\n"
        "with repro.writing(Path(sys.argv[1])) as aside:\n"
        "    aside.write_text('ne')\n    print('half', flush=True)\n    time.sleep(60)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "half\n"
    writer.send_signal(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    assert path.read_text() == "old"


def test_readers_never_see_a_part(tmp_path):
    path, sizes = tmp_path / "numbers.json", set()
    repro.write_json(path, {"n": [0] * 20_000})
    code = (
        "import sys\nfrom pathlib import Path\nfrom osnb import repro\n"
        "for n in range(60):\n    repro.write_json(Path(sys.argv[1]), {'n': [n % 10] * 20_000})"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path])
    while writer.poll() is None:
        sizes.add(len(json.loads(path.read_text())["n"]))
        time.sleep(0.001)
    assert sizes == {20_000}


def test_equal_content_gives_equal_json_whatever_its_order(tmp_path):
    repro.write_json(tmp_path / "a", {"x": 1, "y": [2]})
    repro.write_json(tmp_path / "b", {"y": [2], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# Hashes


def test_a_digest_knows_where_its_parts_end(tmp_path):
    (tmp_path / "file").write_text("ab")
    assert repro.digest("ab", "c") != repro.digest("a", "bc")
    assert (
        repro.digest("ab", "c") == repro.digest(b"ab", "c") == repro.digest(tmp_path / "file", "c")
    )
    assert repro.digest("ab") != repro.digest("ab", "")


def test_a_file_hash_is_that_of_sha256sum(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")  # the example of FIPS 180-2
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert repro.file_hash(tmp_path / "file") == expected


def test_rooms_are_followed_through():
    rooms = repro.rooms("from osnb import tables")
    assert {"osnb", "osnb.labels", "osnb.repro", "osnb.repro.files", "osnb.tables"} <= set(rooms)
    assert rooms == sorted(rooms)
    assert "osnb.datasets.images" in repro.rooms("import osnb.datasets")
    assert repro.rooms("import numpy\nfrom pathlib import Path") == []


def notebook(*sources, **parameters):
    """Text of a notebook with these code cells after a parameters cell."""
    lines = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cells = [("code", ["parameters"], lines), *(("code", [], text) for text in sources)]
    cells.append(("markdown", [], "# Words"))
    return json.dumps(
        {"cells": [{"cell_type": k, "metadata": {"tags": t}, "source": s} for k, t, s in cells]}
    )


@pytest.fixture
def code_hash(tmp_path):
    """The hash of a notebook made of the given cells and parameters."""

    def hashed(*sources, **parameters):
        (tmp_path / "it.ipynb").write_text(notebook(*sources, **parameters))
        return repro.code_hash(tmp_path / "it.ipynb")

    return hashed


def test_the_code_hash_sees_code_and_neither_comments_nor_defaults(code_hash):
    before = code_hash("x = 1", run="a", rate=0.1)
    assert code_hash("x = 1  # one\n", run="a", rate=0.2) == before
    assert code_hash("x = 2", run="a", rate=0.1) != before
    assert code_hash("x = 1", "x = 1", run="a", rate=0.1) != before


# The code that is hashed: packages of a few lines, in which MARK is 1 and then 2.


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An empty folder osnb that `repro` takes for the package."""
    folder = tmp_path / "osnb"
    folder.mkdir()
    monkeypatch.setattr(repro, "PACKAGE", folder)
    return folder


@pytest.fixture
def changes(package, code_hash):
    """Whether the hash changes as MARK does, from the first of two texts to the second."""

    def changed(cell, files, marks=("1", "2")):
        hashes = set()
        for mark in marks:
            for name, text in files.items():
                path = package / name
                path.parent.mkdir(exist_ok=True)
                (path.parent / "__init__.py").touch()
                path.write_text(text.replace("MARK", mark))
            hashes.add(code_hash(cell.replace("MARK", mark), run="a"))
        return len(hashes) == 2

    return changed


CALL = "from osnb import room\nroom.f()"  # the cell, where there is no other
WRAPPED = """
from functools import wraps
def wrapped(function):
    @wraps(function)
    def inner(): return function() + MARK
    return inner
"""
ADDING = "ALL = {}\ndef add(x):\n    ALL[x.__name__] = x\n    return x\n"

REACHED = {  # what changes: the cell, the package, MARK's two texts if they are not 1 and 2
    "the function": (CALL, {"room.py": "def f(): return MARK"}),
    "a function that it calls": (CALL, {"room.py": "def f(): return g()\ndef g(): return MARK"}),
    "a function of another room": (
        CALL,
        {
            "room.py": "from osnb import other\ndef f(): return other.g()",
            "other.py": "def g(): return MARK",
        },
    ),
    "a function under another name": (
        CALL,
        {
            "room.py": "from osnb.other import g as h\ndef f(): return h()",
            "other.py": "def g(): return MARK",
        },
    ),
    "a function behind a re-export": (
        CALL,
        {
            "room/__init__.py": "from osnb.room.home import f",
            "room/home.py": "def f(): return MARK",
        },
    ),
    "which function is re-exported": (
        "from osnb import room\nroom.f(), room.f1(), room.f2()",
        {
            "room/__init__.py": "from osnb.room.home import f1, f2, fMARK as f",
            "room/home.py": "def f1(): return 1\ndef f2(): return 2",
        },
    ),
    "a function of a file in a room": (
        "from osnb import room\nroom.home.f()",
        {"room/__init__.py": "import osnb.room.home", "room/home.py": "def f(): return MARK"},
    ),
    "a function of a renamed room": (
        "import osnb.room as r\nr.f()",
        {"room.py": "def f(): return MARK"},
    ),
    "a function by its full name": (
        "import osnb.room\nosnb.room.f()",
        {"room.py": "def f(): return MARK"},
    ),
    "a constant": (CALL, {"room.py": "A = MARK\ndef f(): return A"}),
    "a constant with a type": (CALL, {"room.py": "A: int = MARK\ndef f(): return A"}),
    "one of two constants": (CALL, {"room.py": "A, B = 0, MARK\ndef f(): return A"}),
    "what is added under another name": (
        CALL,
        {"room.py": "A = []\nB = A\nB += [MARK]\ndef f(): return A"},
    ),
    "the second of two definitions": (
        CALL,
        {"room.py": "def f(): return 0\ndef f(): return MARK"},
    ),
    "an entry of a dictionary": (
        "from osnb import room\nroom.ALL['g']()",
        {"room.py": "def g(): return 0\nALL = {'g': g, 'MARK': g}"},
    ),
    "a function in a dictionary": (
        "from osnb import room\nroom.ALL['g']()",
        {"room.py": "def g(): return MARK\nALL = dict(g=g)"},
    ),
    "a function that is put in a dictionary": (
        CALL,
        {"room.py": "def g(): return MARK\nALL = {}\nALL['g'] = g\ndef f(): return ALL['g']()"},
    ),
    "a method": (
        "from osnb.room import Box\nBox().open()",
        {"room.py": "class Box:\n    def open(self): return MARK"},
    ),
    "an inherited method": (
        "from osnb.room import Box\nBox().open()",
        {"room.py": "class Case:\n    def open(self): return MARK\nclass Box(Case): pass"},
    ),
    "a function that is imported late": (
        CALL,
        {
            "room.py": "def f():\n    from osnb.late import g\n    return g()",
            "late.py": "def g(): return MARK",
        },
    ),
    "a room that another function imports": (
        CALL,
        {
            "room.py": "def load():\n    global late\n    from osnb import late\n"
            "def f():\n    load()\n    return late.g()",
            "late.py": "def g(): return MARK",
        },
    ),
    "a decorator": (CALL, {"room.py": f"{WRAPPED}\n@wrapped\ndef f(): return 0"}),
    "what a default calls": (CALL, {"room.py": "def g(): return MARK\ndef f(x=g()): return x"}),
    "a definition under if": (
        CALL,
        {"room.py": "import sys\nif sys.path:\n    def f(): return MARK"},
    ),
    "the condition of a definition": (
        CALL,
        {"room.py": "if MARK > 1:\n    A = 1\nelse:\n    A = 2\ndef f(): return A"},
    ),
    "a definition under try": (
        CALL,
        {"room.py": "try:\n    import x\nexcept ImportError:\n    A = MARK\ndef f(): return A"},
    ),
    "a name from outside": (
        CALL,
        {"room.py": "from MARK import choice\ndef f(): return choice('ab')"},
        ("random", "secrets"),
    ),
    "a definition that hides a builtin": (
        CALL,
        {"room.py": "MARK\ndef f(): return sum([1])"},
        ("", "def sum(x): return 0"),
    ),
    "an entry that a function makes": (
        "from osnb import room\nroom.ALL['g']()",
        {"room.py": f"{ADDING}\ndef g(): return MARK\nadd(g)"},
    ),
    "what a function adds to": (
        CALL,
        {"room.py": "A = MARK\ndef f():\n    global A\n    A += 1\n    return 0"},
    ),
    "a docstring that is read": (
        CALL,
        {"room.py": 'def f(): return g.__doc__\ndef g():\n    """MARK"""'},
    ),
    # what cannot be told is reached as a whole
    "a room that is passed on": (
        "from osnb import room\nprint(room)",
        {"room.py": "def f(): return MARK"},
    ),
    "a room whose names are text": (
        "from osnb import room\ngetattr(room, 'f')()",
        {
            "room/__init__.py": "from osnb.room.home import f",
            "room/home.py": "def f(): return MARK",
        },
    ),
    "a room that is another name's value": (
        "from osnb import room\nr = room\nr.f()",
        {"room.py": "def f(): return MARK"},
    ),
    "a room that makes its names": (
        CALL,
        {"room.py": "def __getattr__(name): return g\ndef g(): return MARK"},
    ),
    "another room in a room that is passed on": (
        "from osnb import room\ngetattr(getattr(room, 'other'), 'g')()",
        {"room.py": "from osnb import other", "other.py": "def g(): return MARK"},
    ),
    # what an import does
    "a call": ("from osnb import room", {"room.py": "print(MARK)"}),
    "what a call calls": (
        "from osnb import room",
        {"room.py": "def start(): print(MARK)\nstart()"},
    ),
    "a loop": ("from osnb import room", {"room.py": "for i in range(MARK):\n    print(i)"}),
    "an assertion": ("from osnb import room", {"room.py": "assert MARK"}),
    "a removal": ("from osnb import room", {"room.py": "a1 = a2 = 0\ndel aMARK"}),
    "an attribute": (
        "from osnb import room",
        {"room.py": "from osnb import other\nother.A = MARK", "other.py": "A = 0"},
    ),
    "an import of what is imported": (
        "from osnb import room",
        {"room.py": "from osnb import other", "other.py": "print(MARK)"},
    ),
    "an import of the room above": (
        "from osnb.room.home import f",
        {"room/__init__.py": "print(MARK)", "room/home.py": "def f(): return 0"},
    ),
    "an import of the package": (
        "from osnb import room",
        {"room.py": "", "__init__.py": "print(MARK)"},
    ),
}
PASSED_BY = {
    "another function": (CALL, {"room.py": "def f(): return 0\ndef g(): return MARK"}),
    "a new function": (
        CALL,
        {"room.py": "def f(): return 0\nMARK"},
        ("", "def new(x=1): return x"),
    ),
    "a new function before it": (
        CALL,
        {"room.py": "MARK\ndef f(): return 0"},
        ("", "from math import pi\nA = dict(x=1)\ndef new(): return A, pi"),
    ),
    "a new re-export": (
        CALL,
        {
            "room/__init__.py": "from osnb.room.home import f MARK",
            "room/home.py": "def f(): return 0\ndef g(): return 1",
        },
        ("", ", g"),
    ),
    "another constant, class and dictionary": (
        CALL,
        {
            "room.py": "from typing import NamedTuple\nA = MARK\nALL = {'g': MARK}\n"
            "class Pair(NamedTuple):\n    x: int = MARK\n"
            "class Box(dict):\n    def open(self): return MARK\nBOX = Box(x=MARK)\n"
            "def f(): return 0"
        },
    ),
    "a name that is bound on the way": (
        CALL,
        {"room.py": "A = [g + MARK for g in (1, 2)]\ndef f():\n    g = 0\n    return g"},
    ),
    "another function that is decorated": (
        CALL,
        {
            "room.py": WRAPPED.replace("MARK", "0") + "from functools import cache\n"
            "@wrapped\ndef g(): return MARK\n@cache\ndef h(): return MARK\ndef f(): return 0"
        },
    ),
    "a room that nobody imports": (CALL, {"room.py": "def f(): return 0", "x.py": "print(MARK)"}),
    "a function of a room that is imported": (
        "from osnb import room",
        {"room.py": "def f(): return MARK"},
    ),
    "a widget, which only shows": (
        "from osnb import room, widgets\nwith widgets.live():\n    print(room.f())",
        {
            "room.py": "def f(): return 0",
            "widgets/__init__.py": "from osnb.widgets.more import live",
            "widgets/more.py": "from osnb import drawn\ndef live(): return drawn.at(MARK)",
            "drawn.py": "def at(x): return MARK",
        },
    ),
    "how this hash is made": (
        "from osnb import repro\nrepro.begin()",
        {
            "repro/__init__.py": "from osnb.repro import reach\n"
            "from osnb.repro.notebooks import cells\ndef begin(): return reach.of(cells())",
            "repro/reach.py": "def of(x): return MARK",
            "repro/notebooks.py": "def cells(): return MARK",
        },
    ),
    "a docstring": (
        CALL,
        {"room.py": '"""MARK"""\ndef f():\n    """MARK"""\n    return 0\nA = 0\n"""MARK"""'},
    ),
    "a cell's docstring": ('def f():\n    """MARK"""', {"room.py": ""}),
    "a comment": (CALL, {"room.py": "# MARK\ndef f():\n    return 0  # MARK"}),
    "how a line is laid out": (
        CALL,
        {"room.py": "def f():\n    return MARK"},
        ("{'a': (1 + 2), 'b': 0x10}", '{\n        "a": 1 + 2,\n        "b": 16,\n    }'),
    ),
}


@pytest.mark.parametrize("case", REACHED.values(), ids=REACHED)
def test_the_code_hash_changes_with_what_a_notebook_reaches(case, changes):
    assert changes(*case)


@pytest.mark.parametrize("case", PASSED_BY.values(), ids=PASSED_BY)
def test_the_code_hash_stays_the_same_when_other_things_change(case, changes):
    assert not changes(*case)


# Catalogues: of ours the entries of `kind` and "two" are used, or all where that cannot be told.

ENTRIES = (
    "from osnb.catalogue import Catalogue\ndef one(): return {0}\ndef two(): return {1}\n"
    "def three(): return {2}\nALL = Catalogue(one=one, two=two, three=three)"
)
USES = {  # the cell, and which of the three functions its hash depends on
    "a parameter's value": ("from osnb import room\nroom.ALL[kind]", "1"),
    "the value that is bound": ("from osnb import room\nroom.ALL.bind(kind, a=1)()", "1"),
    "a literal": ("from osnb import room\nroom.ALL['two']", "2"),
    "a literal that is bound": ("from osnb.room import ALL\nALL.bind('two')()", "2"),
    "both": ("from osnb.room import ALL as every\nevery[kind](), every['two']()", "12"),
    "through another room": ("from osnb.other import ALL\nALL['two']()", "2"),
    "by a room": ("from osnb import other\nother.use()", "3"),
    "inside an argument": ("from osnb import room\nprint(len([room.ALL[kind]()]))", "1"),
    "the catalogue passed on": ("from osnb import room\nprint(room.ALL)", "123"),
    "an entry that is computed": ("from osnb import room\nroom.ALL[kind.lower()]", "123"),
    "an entry that is not there": ("from osnb import room\nroom.ALL['four']", "123"),
    "a name that is set again": ("from osnb import room\nkind = 'two'\nroom.ALL[kind]", "123"),
    "a name that is no parameter": ("from osnb import room\nfor x in 'a': room.ALL[x]", "123"),
    "each word of a parameter": (
        "from osnb import room\nfor x in words.split(): room.ALL[x]",
        "13",
    ),
    "words in a comprehension": (
        "from osnb.room import ALL\n[ALL.bind(x)() for x in words.split()]",
        "13",
    ),
    "words of what is no parameter": (
        "from osnb import room\nother = 'two'\nfor x in other.split(): room.ALL[x]",
        "123",
    ),
    "a variable after its loop": (
        "from osnb import room\nfor x in words.split(): pass\nroom.ALL[x]",
        "123",
    ),
    "a variable that an inner loop takes": (
        "from osnb import room\nfor x in words.split(): [room.ALL[x] for x in 'a']",
        "123",
    ),
    "its names": ("from osnb import room\nroom.ALL[kind]\nsorted(room.ALL)", "123"),
    "the room passed on": ("from osnb import room\nprint(room, room.ALL[kind])", "123"),
}


@pytest.mark.parametrize(("cell", "wanted"), USES.values(), ids=USES)
def test_of_a_catalogue_the_entries_that_are_used_count(cell, wanted, package, tmp_path):
    (package / "catalogue.py").write_text("class Catalogue(dict): pass")
    (package / "other.py").write_text("from osnb.room import ALL\ndef use(): return ALL['three']()")
    (tmp_path / "it.ipynb").write_text(notebook(cell, run="a", kind="one", words="one three"))

    def hashed(*values, kind="one"):
        (package / "room.py").write_text(ENTRIES.format(*values))
        given = {"run": "a", "kind": kind, "words": "one three"}
        return repro.code_hash(tmp_path / "it.ipynb", given)

    before = hashed(0, 0, 0)
    changed = [hashed(*(int(n == m) for m in range(3))) != before for n in range(3)]
    assert "".join(str(n + 1) for n in range(3) if changed[n]) == wanted
    if wanted in ("1", "12"):
        assert hashed(0, 0, 0, kind="three") != before
    assert repro.code_hash(tmp_path / "it.ipynb") != before or wanted == "123" or "1" not in wanted


def test_a_new_entry_of_a_catalogue_changes_no_run_that_names_its_own(package, tmp_path):
    (package / "catalogue.py").write_text("class Catalogue(dict): pass")
    cell = "from osnb import room\nroom.ALL[kind]()"
    (tmp_path / "it.ipynb").write_text(notebook(cell, run="a", kind="one"))
    hashes = set()
    for more in ("", ", four=one"):
        text = ENTRIES.format(0, 0, 0).replace("three=three", f"three=three{more}")
        (package / "room.py").write_text(text)
        hashes.add(repro.code_hash(tmp_path / "it.ipynb", {"kind": "one"}))
    assert len(hashes) == 1


def test_a_package_that_imports_a_module_of_its_own_reaches_what_it_names_there(package, code_hash):
    (package / "inside").mkdir()
    (package / "inside" / "__init__.py").write_text("from osnb.inside import deep\nf = deep.f")
    (package / "inside" / "deep.py").write_text("def f(): return 0\ndef other(): return 1")
    cell = "from osnb import inside\ninside.f()"
    before = code_hash(cell, run="a")
    assert repro.reached(cell) == ["osnb.inside.deep.f", "osnb.inside.f"]
    (package / "inside" / "deep.py").write_text("def f(): return 0\ndef other(): return 2")
    assert code_hash(cell, run="a") == before
    (package / "inside" / "deep.py").write_text("def f(): return 3\ndef other(): return 2")
    assert code_hash(cell, run="a") != before


def test_the_package_may_lie_anywhere(package, code_hash, tmp_path, monkeypatch):
    (package / "room.py").write_text("def f(): return 0")
    before = code_hash(CALL, run="a")
    monkeypatch.setattr(repro, "PACKAGE", package.rename(tmp_path / "elsewhere"))
    assert code_hash(CALL, run="a") == before
    assert repro.reached(CALL) == ["osnb.room.f"]


@pytest.mark.parametrize(
    "cell", ["from osnb import hierarchy", "from osnb import room", "import osnb.hierarchy.tree"]
)
def test_the_code_hash_sees_name_and_content_of_the_data_that_a_room_reads(
    cell, code_hash, package
):
    (package / "hierarchy").mkdir()
    (package / "hierarchy" / "__init__.py").touch()
    (package / "hierarchy" / "tree.py").touch()
    (package / "room.py").write_text("from osnb import hierarchy")
    (package / "data").mkdir()
    nouns, hashes = package / "data" / "nouns.tsv", []
    for content in ("dog", "cat"):
        nouns.write_text(content)
        hashes.append(code_hash(cell, run="a"))
    nouns.rename(package / "data" / "verbs.tsv")
    hashes.append(code_hash(cell, run="a"))
    assert len(set(hashes)) == 3
    unread = code_hash("from osnb import other", run="a")
    (package / "data" / "verbs.tsv").write_text("eel")
    assert code_hash("from osnb import other", run="a") == unread


def test_training_reaches_what_it_runs_and_nothing_beside():
    reached = repro.reached(*repro.code_cells(TRAINING))
    assert reached == sorted(set(reached))
    parts = [name.split(".") for name in reached]
    in_rooms = {f"{room}.{names[-1]}" for _, room, *names in parts if names}
    assert in_rooms >= {
        *("train.fit", "train.Run", "train.SCHEDULES", "train.triangle", "repro.begin"),
        *("losses.entropic", "models.conv", "models.Network", "augment.flip", "labels.NEGATIVE"),
        *("metrics.confidence", "catalogue.Catalogue", "datasets.synsets", "datasets.draw"),
        *("datasets.Batches", "protocols.p2", "scores.columns", "tables.write"),
        *("hierarchy.ILSVRC", "hierarchy.distance"),
    }
    assert not in_rooms & {
        *("metrics.openness", "metrics.aurc", "plots.oscr_curves"),
        "protocols.file_lists",
    }


def test_every_room_that_reads_files_of_the_package_has_a_row():
    for path in sorted(repro.PACKAGE.rglob("*.py")):
        room = path.relative_to(repro.PACKAGE).parts[0].removesuffix(".py")
        if re.search(r"\b(__file__|PACKAGE|importlib\.resources|pkgutil)\b", path.read_text()):
            assert room in {
                *reach.DATA,
                "repro",
                "bench",
                "run",
                "report",
                "gallery",
                "course",
                "doctor",
                "verify",
            }, path  # no run reaches these


def test_hashing_imports_neither_the_rooms_nor_numpy_nor_yaml():
    code = (
        "import sys\nfrom osnb import repro\n"
        "repro.code_hash(repro.root() / 'notebooks' / '12_palechor_train.ipynb')\n"
        "print(*{name.split('.')[0] for name in sys.modules} & {'numpy', 'pandas', 'yaml'})\n"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('osnb.')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "\nrepro\n", done.stderr


def binding(code):
    """Full names of what binds the code of a function: of the statement that it stands in."""
    path = Path(code.co_filename).relative_to(repro.PACKAGE.parent)
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for node in ast.parse(Path(code.co_filename).read_text()).body:
        lines = [node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]
        if min(lines) <= code.co_firstlineno <= node.end_lineno:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [getattr(node, "name", None), *(getattr(each, "id", None) for each in targets)]
            return {f"{module}.{name}" for name in names if name}
    return set()


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from osnb import metrics", "metrics.auroc(side[5:], side)"),
        ("from osnb import metrics", "metrics.summary(side, side > 0, side)"),
        ("from osnb.metrics import aurc", "aurc(side, side > 0, convention='kim')"),
        ("from osnb import protocols", "protocols.counts(protocols.images(protocols.p2(), files))"),
        ("from osnb import protocols", "protocols.PROTOCOLS['p3']()"),
        ("from osnb.datasets import synsets", "synsets.draw(['n02084071'], [0])"),
        (
            "from osnb import scores\nfrom osnb.outputs import Outputs",
            "scores.columns(Outputs(side.reshape(5, 2), ()), np.zeros(5, int), known=1)",
        ),
    ],
)
def test_every_function_that_runs_is_reached(imports, use):
    import numpy as np
    import pandas as pd

    from osnb import hierarchy

    rows = [(f"{w}/{i}/{s}", w, s) for w in hierarchy.ILSVRC for i in range(5) for s in SPLITS]
    files = pd.DataFrame(rows, columns=["sample", "wnid", "split"])
    names = {"np": np, "side": np.linspace(-1, 1, 10), "files": files}
    exec(imports, names)
    ran = set()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_code))
    try:
        exec(use, names)
    finally:
        sys.setprofile(None)
    ours = [code for code in ran if code.co_filename.startswith(str(repro.PACKAGE))]
    reached = set(repro.reached(imports, use))
    assert ours
    for code in ours:
        assert binding(code) & reached, code.co_qualname


# Parameters


def test_what_a_notebook_declares_are_names_and_literals(project):
    path = project.add("works", "90_works")
    expected = {"run": "small", "size": "mini", "seed": 0, "rate": 0.5, "word": "blue"}
    assert repro.declared(path) == expected


@pytest.mark.parametrize(
    ("fixture", "reason"),
    [
        ("without_parameters", "it has 0"),
        ("two_parameters_cells", "it has 2"),
        ("computed_default", "default of 'half' must be a literal; got rate / 2"),
    ],
)
def test_a_notebook_declares_its_parameters_in_one_cell_of_literals(project, fixture, reason):
    path = project.add(fixture, "90_fixture")
    with pytest.raises(ValueError, match=reason):
        repro.declared(path)


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [(3, 0, 3), (2, 0.5, 2.0), (0.25, 0.5, 0.25), ("a", "b", "a"), (True, False, True)],
)
def test_a_value_of_the_right_type_passes(value, default, expected):
    passed = repro.checked("90_works", "x", value, default)
    assert passed == expected
    assert type(passed) is type(default)


@pytest.mark.parametrize(
    ("value", "default", "reason"),
    [
        ("1e-3", 0.5, "write 1.0e-3"),
        (0.5, 3, "'x' of 90_works is int, such as 3; got 0.5"),
        (True, 3, "got True"),
        (True, 0.5, "got True"),
        (3, "a", "is str"),
        (None, "a", "got None"),
        (1, True, "is bool"),
        ("a", ["a"], "is list"),
    ],
)
def test_a_value_of_another_type_is_refused(value, default, reason):
    with pytest.raises(ValueError, match=reason):
        repro.checked("90_works", "x", value, default)


# Runs


@pytest.fixture
def names(project):
    """What globals() of a notebook of the project holds."""
    project.add("works", "90_works")
    project.write("90_works", "run: small\nrate: 0.25\n")
    return {"run": "small", "size": "mini", "seed": 0, "rate": 0.25, "word": "blue", "np": None}


def test_a_run_is_called_after_its_params_file(names, project):
    run = repro.begin("90_works", names)
    assert run.name == "small"
    assert run.directory == project.folder / "runs" / "90_works" / "small"
    assert run.parameters == {name: names[name] for name in names if name != "np"}


def test_what_differs_from_the_params_file_joins_the_name(names):
    run = repro.begin("90_works", names | {"seed": 3, "word": "a/b"})
    assert run.name == "small-seed3-worda=2Fb"
    assert run.parameters["run"] == run.name


def test_a_run_that_is_called_by_its_full_name_keeps_it(names):
    assert repro.begin("90_works", names | {"run": "small-seed3", "seed": 3}).name == "small-seed3"


def test_a_default_that_the_params_file_replaces_counts_as_a_difference(names):
    assert repro.begin("90_works", names | {"rate": 0.5}).name == "small-rate0.5"


def test_a_value_of_another_type_opens_no_run(names, project):
    with pytest.raises(ValueError, match="'seed' of 90_works is int"):
        repro.begin("90_works", names | {"seed": "3"})
    assert not (project.folder / "runs").exists()


def test_a_run_that_is_opened_again_keeps_its_files(names):
    (repro.begin("90_works", names).directory / "history.parquet").write_text("rows")
    again = repro.begin("90_works", names).directory
    assert (again / "history.parquet").read_text() == "rows"


def test_files_of_other_code_are_put_aside(names, project):
    directory = repro.begin("90_works", names).directory
    (directory / "checkpoint.pt").write_text("old")
    (directory / "run.json").write_text("{}")
    project.add("trains", "90_works")
    assert repro.begin("90_works", names).directory == directory
    assert (directory / "superseded" / "checkpoint.pt").read_text() == "old"
    assert sorted(path.name for path in directory.iterdir()) == [
        *("begun.json", "run.json", "superseded")
    ]


def test_saved_results_have_a_stamp_and_no_clock(names):
    import pandas as pd

    run = repro.begin("90_works", names)
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), latex="x & y", inputs={"other": "abc"})
    first = {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}
    assert first["table_2.csv"] == b"x\n0.333333\n"
    stamp = json.loads(first["table_2.json"])
    assert stamp["parameters"] == run.parameters
    assert (stamp["notebook"], stamp["run"], stamp["inputs"]) == (
        "90_works",
        "small",
        {"other": "abc"},
    )
    assert first["table_2.tex"] == b"x & y"
    run.save("table_2", table=pd.DataFrame({"x": [1 / 3]}), latex="x & y", inputs={"other": "abc"})
    assert first == {path.name: path.read_bytes() for path in run.directory.glob("table_2*")}


def test_equal_figures_are_equal_bytes(names):
    from osnb.plots.style import Figure

    run = repro.begin("90_works", names)

    def svg():
        figure = Figure()
        figure.subplots().plot([1, 2])
        run.save("figure_1", figure=figure)
        return (run.directory / "figure_1.svg").read_bytes()

    assert svg() == svg()


def test_equal_seeds_give_equal_draws():
    import random

    import numpy as np
    import torch

    def draws():
        repro.seed_all(7)
        return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    assert draws() == draws()
