"""Nothing that is only read can run code or write elsewhere: params, checkpoints, archives."""

import ast
import hashlib
import io
import json
import math
import os
import pickle
import random
import re
import stat
import struct
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from finished import EMPTY

from osnb.base import workbook
from osnb.base.workbook import LARGE, RATIO
from osnb.book import archive, run
from osnb.book.archive.checking import TEXT
from osnb.train import checkpoint, ranks
from tests.tries import answered

PICKLES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}
CALLS |= {"subprocess.getoutput", "subprocess.getstatusoutput"}
ATTRIBUTES = {"extract", "extractall", "unpack_archive", "read_pickle", "to_pickle"}
ATTRIBUTES |= {"all_gather_object", "broadcast_object_list", "hub"}
EXCEPTIONS = {
    ("train/ranks.py", "import cloudpickle"): "from the pipe of the process that has started it",
    ("20_vaze_splits.ipynb", "rows['paired'].astype(str).str.extract"): "part of a text",
}
FILES = {str(path.relative_to(workbook.PACKAGE)): path for path in workbook.PACKAGE.rglob("*.py")}
NOTEBOOKS = sorted((workbook.root() / "notebooks").glob("*.ipynb"))


# What the code says


def findings(text):
    """What in a file's code could run or unpack what it reads, sorted."""
    tree = ast.parse(text)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    safe = {node.name for node in classes if _is_safe_loader(node)}
    return sorted({said for node in ast.walk(tree) if (said := _finding(node, safe))})


def _finding(node, safe):
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = getattr(node, "module", "")
        names = [*(alias.name for alias in node.names), module or ""]
        pickles = {name.partition(".")[0] for name in names} & PICKLES
        hidden = module in {"yaml", "os", "subprocess"} or (module == "torch" and "load" in names)
        return f"import {min(pickles)}" if pickles else ast.unparse(node) * hidden
    if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
        return ast.unparse(node)
    if not isinstance(node, ast.Call):
        return ""
    name = ast.unparse(node.func)
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    wrong = (
        name in CALLS
        or (name.startswith("yaml.") and not _is_safe(node, safe))
        or (name.endswith("torch.load") and given.get("weights_only") != "True")
        or given.get("allow_pickle", "False") != "False"
        or given.get("shell", "False") != "False"
    )
    return name * wrong


def _is_safe_loader(node):
    """Whether every loader in the bases of a class is a safe one, and there is one."""
    loaders = re.findall(r"\w*Loader\b", " ".join(map(ast.unparse, node.bases)))
    return bool(loaders) and {*loaders} <= {"SafeLoader", "CSafeLoader"}


def _is_safe(call, safe):
    name, loader = ast.unparse(call.func), [ast.unparse(value) for value in call.args[1:]]
    allowed = {
        "yaml.safe_load",
        "yaml.parse",
        "yaml.safe_dump",
        "yaml.constructor.ConstructorError",
    }
    return name in allowed or (name == "yaml.load" and {*loader} & safe)


def test_the_package_and_the_notebooks_read_nothing_that_could_run_and_every_exception_is_needed():
    texts = {name: [path.read_text()] for name, path in FILES.items()}
    texts |= {path.name: workbook.code_cells(path) for path in NOTEBOOKS}
    found = {(name, what) for name, each in texts.items() for x in each for what in findings(x)}
    assert found == EXCEPTIONS.keys()


DANGEROUS = [
    "import pickle",
    "def f():\n    from joblib import load",
    "yaml.load(text)",
    "yaml.load(text, yaml.Loader)",
    "yaml.full_load(text)",
    "yaml.unsafe_load(text)",
    "from yaml import load",
    "class Mine(yaml.Loader):\n    pass\nyaml.load(text, Mine)",
    "torch.load(path)",
    "torch.load(path, weights_only=False)",
    "torch.load(path, weights_only=trusted)",
    "from torch import load",
    "torch.hub.load(name)",
    "np.load(path, allow_pickle=True)",
    "pd.read_pickle(path)",
    "zipfile.ZipFile(path).extractall(folder)",
    "tarfile.open(path).extract(name)",
    "shutil.unpack_archive(path)",
    "eval(text)",
    "exec(text)",
    "os.system(text)",
    "from os import system",
    "subprocess.run(text, shell=True)",
]
HARMLESS = [
    "model.eval()",
    "yaml.safe_load(text)",
    "class Mine(yaml.SafeLoader):\n    pass\nyaml.load(text, Mine)",
    "torch.load(path, weights_only=True)",
    "np.load(path)",
    "subprocess.run([name])",
]


def test_what_could_run_is_found_and_what_cannot_is_not():
    assert [text for text in DANGEROUS if not findings(text)] == []
    assert [text for text in HARMLESS if findings(text)] == []


# Params, checkpoints and jobs


@pytest.fixture
def ran(tmp_path):
    """A file that appears if something runs what it should only read."""
    return tmp_path / "ran"


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_params_file_that_makes_an_object_is_refused(project, ran):
    project.add("works", "90_works")
    text = f"run: small\nword: !!python/object/apply:os.mkdir ['{ran}']\n"
    with pytest.raises(run.Refused, match="line 2: could not determine a constructor"):
        run.plan(project.write("90_works", text))
    assert not ran.exists()


def test_a_checkpoint_that_holds_a_class_is_refused(tmp_path, ran):
    checkpoint.save({"model": Evil(ran)}, tmp_path / "evil.pt")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        checkpoint.load(tmp_path / "evil.pt")
    assert not ran.exists()
    buffer = io.BytesIO()
    torch.save({"model": Evil(ran)}, buffer)
    buffer.seek(0)
    torch.load(buffer, weights_only=False)
    assert ran.exists()  # so it was evil


def test_what_processes_exchange_is_not_unpickled(ran, monkeypatch):
    monkeypatch.setattr(ranks, "count", lambda: 2)
    monkeypatch.setattr(
        ranks.distributed, "all_gather", lambda parts, mine: [p.copy_(mine) for p in parts]
    )
    assert ranks.gathered({"x": (1.5, torch.ones(2)[0].item())}) == [{"x": (1.5, 1.0)}] * 2
    with pytest.raises(pickle.UnpicklingError, match="Weights only"):
        ranks.gathered(Evil(ran))
    assert not ran.exists()


# Archives

OURS = {"imported", "files", "sha256"}  # of run.json, what importing changes
RUN = "runs/12_fixture_train/small/"
MANIFEST = "manifest-sha256.txt"


class Forger:
    """The members of an archive, to be changed and written again."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.infos, self.extra, self.sums = {}, [], {}

    def edit(self, name, **values):
        """Set values in a json member; of run.json's run, that is all that changes."""
        self.members[name] = json.dumps(json.loads(self.members[name]) | values).encode()

    def output(self, name, content):
        """Add a result to the run, or change one, with all that speaks of it."""
        self.members[RUN + name] = content
        outputs = json.loads(self.members[RUN + "run.json"])["outputs"]
        sha256 = hashlib.sha256(content).hexdigest()
        self.edit(RUN + "run.json", outputs=outputs | {name: sha256})

    def info(self, name, **values):
        """A member's entry in the zip, with other values."""
        self.infos[name] = zipfile.ZipInfo(name)
        for key, value in values.items():
            setattr(self.infos[name], key, value)

    def executed(self, content):
        """Another executed notebook, which run.json knows."""
        data = json.dumps(content).encode()
        self.members[RUN + "executed.ipynb"] = data
        self.edit(RUN + "run.json", files={"executed.ipynb": hashlib.sha256(data).hexdigest()})

    def write(self, path):
        hashes = {name: hashlib.sha256(x).hexdigest() for name, x in self.members.items()}
        hashes = {name: x for name, x in (hashes | self.sums).items() if x and name != MANIFEST}
        self.members[MANIFEST] = "".join(f"{x}  {name}\n" for name, x in hashes.items()).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in [*self.members.items(), *self.extra]:
                archive.writestr(self.infos.get(name, name), content)


def stamped(**changes):
    """A scores table of the archive's run whose stamp has been changed."""

    def change(forger):
        stamp = json.loads(forger.members[RUN + "scores.json"]) | changes
        forger.output("scores.json", json.dumps(stamp).encode())

    return change


def named(name):
    return lambda forger: forger.members.update({name: b"x"})


def state(**values):
    return lambda forger: forger.edit(RUN + "run.json", **values)


def kind(mode):
    return lambda forger: forger.info(RUN + "table.csv", create_system=3, external_attr=mode << 16)


def history(**columns):
    """The epochs of the archive's run, one or none, with another column."""

    def change(forger):
        epochs = [1 for _ in next(iter(columns.values()))]
        sink = io.BytesIO()
        pq.write_table(pa.table({"epoch": epochs} | columns), sink)
        forger.output("history.parquet", sink.getvalue())

    return change


def scored(**columns):
    """The scores of the archive's run with another column, and a stamp of the new bytes."""

    def change(forger):
        table = pq.read_table(io.BytesIO(forger.members[RUN + "scores.parquet"])).to_pandas()
        sink = io.BytesIO()
        table.assign(**columns).to_parquet(sink)
        forger.output("scores.parquet", sink.getvalue())
        stamp = json.loads(forger.members[RUN + "scores.json"])
        stamp["files"]["scores.parquet"] = hashlib.sha256(sink.getvalue()).hexdigest()
        forger.output("scores.json", json.dumps(stamp).encode())

    return change


def listed(files):
    """A table's stamp that lists other files."""

    def change(forger):
        stamp = json.loads(forger.members[RUN + "table.json"]) | {"files": files}
        forger.output("table.json", json.dumps(stamp).encode())

    return change


def moved(old, new):
    def change(forger):
        for name in [name for name in forger.members if old in name]:
            forger.members[name.replace(old, new)] = forger.members.pop(name)

    return change


NO_PLACE = "has no place in an archive"
FORGED = {
    "symlink": (kind(stat.S_IFLNK | 0o777), r"table\.csv is no regular file"),
    "device": (kind(stat.S_IFCHR | 0o666), "no regular file"),
    "folder": (named("runs/12_fixture_train/small/"), NO_PLACE),
    "parent": (named("runs/12_fixture_train/../../x.csv"), NO_PLACE),
    "parent as run": (named("runs/12_fixture_train/../x.csv"), NO_PLACE),
    "absolute": (named("/tmp/x.csv"), NO_PLACE),
    "backslash": (named("runs\\12_fixture_train\\small\\x.csv"), NO_PLACE),
    "drive": (named("C:/x.csv"), NO_PLACE),
    "drive in a run": (named("runs/12_fixture_train/c:x/table.csv"), NO_PLACE),
    "hidden": (named(RUN + ".x.csv"), NO_PLACE),
    "line break": (named(RUN + "x.csv\n"), NO_PLACE),
    "letters that look alike": (named(RUN + "tаble.csv"), NO_PLACE),
    "deeper": (named(RUN + "superseded/x.csv"), NO_PLACE),
    "checkpoint": (named(RUN + "checkpoint.pt"), NO_PLACE),
    "begun": (named(RUN + "begun.json"), NO_PLACE),
    "code": (named("osnb/__init__.py"), NO_PLACE),
    "notebook elsewhere": (named("notebooks/../x.ipynb"), NO_PLACE),
    "other notebook": (
        moved("12_fixture_train", "14_other_train"),
        "of no notebook of this project; there are: 12_fixture_train, 13_fixture_results",
    ),
    "duplicate": (lambda f: f.extra.append((RUN + "table.csv", b"x")), "in it twice"),
    "case-fold duplicate": (named(RUN + "TABLE.csv"), "in it twice, or in other capitals"),
    "bomb": (lambda f: f.output("scores.parquet", bytes(LARGE + 1)), f"more than {RATIO}-fold"),
    "text as large as a bomb": (
        lambda f: f.output("x.svg", bytes(TEXT + 1)), r"67,108,865 bytes; 67,108,864 are allowed"),
    "lzma": (lambda f: f.info(RUN + "table.csv", compress_type=14), "in another way than defl"),
    "wrong hash": (lambda f: f.sums.update({RUN + "table.csv": "0" * 64}), "not the checksum"),
    "unlisted member": (lambda f: f.sums.update({RUN + "table.csv": ""}), r"disagree on .*csv"),
    "listed, not there": (lambda f: f.members.pop("requirements.lock") and f.sums.update(
        {"requirements.lock": "0" * 64}), r"disagree on requirements\.lock"),
    "bad manifest": (lambda f: f.sums.update({"x": "y"}), "no checksum of a member"),
    "no metadata": (lambda f: f.members.pop("ro-crate-metadata.json"), "it lacks ro-crate"),
    "no run.json": (lambda f: f.members.pop(RUN + "run.json"), r"lacks run\.json"),
    "not executed": (lambda f: f.members.pop(RUN + "executed.ipynb"), r"or executed\.ipynb"),
    "run.json no json": (lambda f: f.members.update({RUN + "run.json": b"{"}), "is no json"),
    "run.json too deep": (
        lambda f: f.members.update({RUN + "run.json": b"[" * 100_000}), "is no json"),
    "run.json a list": (lambda f: f.members.update({RUN + "run.json": b"[]"}), "holds a list"),
    "failed": (state(state="failed"), "small, failed; not done"),
    "running": (state(state="running"), "small, running; not done"),
    "of another run": (state(run="small-seed1"), "is of 12_fixture_train/small-seed1"),
    "no outputs": (state(outputs=None), "no run says: outputs$"),
    "parameters of a kind": (state(parameters=3), "no run says: parameters$"),
    "no size": (state(parameters={"run": "small"}), "no run says: parameters$"),
    "a parameter that is an object": (
        state(parameters={"run": "small", "size": "mini", "seed": 0, "x": {}}), "parameters$"),
    "a checklist of a kind": (state(checklist=7), "no run says: checklist$"),
    "measures of a kind": (state(measures={"loss": "low"}), "no run says: measures$"),
    "an error": (state(error=5), "no run says: error$"),
    "use of a kind": (state(used="z"), "no run says: used$"),
    "use of a GPU of a kind": (state(used={"gpu": "all"}), "no run says: used$"),
    "attempts of a kind": (state(attempts=[3]), "no run says: attempts$"),
    "inputs without hash": (state(inputs={"small": "x"}), "no run says: inputs$"),
    "not a date": (state(finished="not a date"), "no run says: finished$"),
    "a date in no zone": (state(started="2026-11-21T20:54:22"), "no run says: started$"),
    "negative seconds": (state(seconds=-1.0), "no run says: seconds$"),
    "seconds that are no number": (state(seconds=math.nan), "no run says: seconds$"),
    "endless seconds": (state(seconds=math.inf), "no run says: seconds$"),
    "yes seconds": (state(seconds=True), "no run says: seconds$"),
    "more memory than there is": (state(used={"memory": 10**400}), "no run says: used$"),
    "a host that clears the screen": (state(host="a\x1b[2Jb"), "no run says: host$"),
    "a host of two lines": (state(host="a\nb"), "no run says: host$"),
    "a package that rings": (state(packages={"torch\a": "2"}), "no run says: packages$"),
    "a word that turns the line": (
        state(parameters={"run": "small", "size": "mini", "seed": 0, "word": "\u202ea"}),
        "no run says: parameters$"),
    "a long host": (state(host="a" * 100_000), "no run says: host$"),
    "a key of another kind": (state(**{"more\x1b[2J": 1}), r"no run says: 'more\\x1b\[2J'$"),
    "a table of other bytes than its stamp's": (
        lambda f: f.output("table.csv", b"seed\n7\n"), r"table\.json gives other checksums"),
    "a stamp of files that are not there": (
        listed({"x.csv": "0" * 64}), r"table\.json gives other checksums"),
    "a stamp of files of a kind": (listed([["table.csv"]]), r"table\.json gives other checksums"),
    "no notebook": (lambda f: f.executed({}), r"executed\.ipynb is no notebook of format 4"),
    "a notebook of five cells": (lambda f: f.executed(EMPTY | {"cells": 5}), "cells is not as"),
    "a cell of a kind": (lambda f: f.executed(EMPTY | {"cells": [{}]}), r"cells\.0 is not as"),
    "another notebook than run.json's": (
        lambda f: f.members.update({RUN + "executed.ipynb": json.dumps(EMPTY).encode() + b" "}),
        r"another checksum than executed\.ipynb has"),
    "a headline of a kind": (stamped(headline={"what": 1}), "a headline that cannot be shown"),
    "a headline of directives": (
        stamped(headline=[{"what": "a\n```{include} /etc/passwd", "paper": 1, "ours": 2}]),
        "a headline that cannot be shown"),
    "a stamp of nothing": (lambda f: f.output("table.json", b"{}"), "stamp of another"),
    "a size that is none": (
        state(parameters={"run": "small", "size": "vast", "seed": 0}), "no run says: parameters$"),
    "a history of words": (history(loss=["low"]), "no table of scores, outputs or history"),
    "a history that clears the screen": (history(**{"a\x1b[2J": [1]}), "no table of scores"),
    "an empty history": (history(loss=[]), "no table of scores"),
    "outputs that are none": (
        lambda f: f.output("outputs.parquet", f.members[RUN + "history.parquet"]), "no table"),
    "manifest that clears the screen": (
        lambda f: f.sums.update({"\x1b[2J": "0" * 64}), "is no checksum of a member"),
    "outputs without hash": (state(outputs={}), "other outputs or checksums"),
    "no parquet": (lambda f: f.output("scores.parquet", b"PAR1"), "no table of scores"),
    "no scores": (
        lambda f: f.output("scores.parquet", f.members[RUN + "history.parquet"]), "no table of sc"),
    "no stamp": (
        lambda f: f.output("scores_x.parquet", f.members[RUN + "scores.parquet"]), "no stamp expl"),
    "stamp of another": (stamped(run="mini_p1_softmax"), "bears the stamp of another run"),
    "scores that are no numbers": (
        scored(max_logit=math.nan), r"scores\.parquet: scores are numbers"),
    "scores of whole numbers": (scored(max_logit=1), r"scores\.parquet: scores are float64"),
    "a sample twice": (scored(sample="a"), r"scores\.parquet: each sample has one row"),
    "scores of other words": (scored(max_logit="a"), "no table of scores"),
    "a text that fills the memory": (scored(group="a" * 30_000), "holds more than a table of"),
    "rows that fill the memory": (history(loss=[0.0] * 200_000), "holds more than a table of"),
    "numbers for a text": (scored(group=1), "no table of scores"),
    "no text": (scored(group=None), "no table of scores"),
    "labels of a kind": (scored(label=0.0), r"scores\.parquet: "),
    "a history of nothing": (history(loss=pa.nulls(3)), "no table of scores"),
    "other scores than the stamp tells": (scored(max_logit=0.25), "tells of other columns"),
    "content of a kind": (stamped(content=[1]), "tells of other columns"),
    "content of no file": (stamped(content={"x.parquet": "0"}), "tells of other columns"),
    "other columns than run.json's": (stamped(columns={"method": ["x"]}), "stamp of another"),
    "stamp with other parameters": (stamped(parameters={"size": "paper"}), "stamp of another"),
    "stamp of a kind": (stamped(parameters=3), "stamp of another"),
}  # fmt: skip


def listing(folder):
    return {str(x): x.read_bytes() if x.is_file() else None for x in folder.rglob("*")}


@pytest.fixture
def received(packed, project, tmp_path):
    """An archive of three runs, of which the project has none; its figures are there."""
    (project.folder / "runs").rename(tmp_path / "away")
    return packed


def refused(project, path, reason=""):
    """Assert that an archive is refused in one sentence, and that nothing is written."""
    before = listing(project.folder)
    with pytest.raises(ValueError, match=reason) as error:
        answered(lambda: archive.unpack(path, force=True))  # within ten seconds of a processor
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert listing(project.folder) == before


def test_a_forger_who_changes_nothing_is_believed(received, project, tmp_path):
    Forger(received).write(tmp_path / "x.zip")
    assert len(archive.unpack(tmp_path / "x.zip")) == 3


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("change", "reason"), FORGED.values(), ids=FORGED)
def test_a_forged_archive_is_refused_and_nothing_is_written(
    received, project, tmp_path, change, reason
):
    forger = Forger(received)
    change(forger)
    forger.write(tmp_path / "x.zip")
    refused(project, tmp_path / "x.zip", reason)


def test_a_truncated_archive_is_refused_wherever_it_ends(received, project, tmp_path):
    whole = received.read_bytes()
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 1000, len(whole) - 30, len(whole) - 1):
        (tmp_path / "x.zip").write_bytes(whole[:end])
        refused(project, tmp_path / "x.zip", "no whole zip file|refused")


def test_a_name_with_a_zero_byte_is_refused(received, project, tmp_path):
    """zipfile reads it as what stands before the byte."""
    forger = Forger(received)
    forger.members[RUN + "x.csv.svg"] = b"x"
    forger.write(tmp_path / "x.zip")
    whole = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(whole.replace(b"x.csv.svg", b"x.csv\0svg"))
    refused(project, tmp_path / "x.zip", NO_PLACE)


def test_an_encrypted_member_is_refused(received, project, tmp_path):
    whole = bytearray(received.read_bytes())
    central = whole.index(b"PK\1\2")
    struct.pack_into("<H", whole, central + 8, 1)
    (tmp_path / "x.zip").write_bytes(whole)
    refused(project, tmp_path / "x.zip", "is encrypted")


def test_a_member_that_starts_before_the_file_is_refused(received, project, tmp_path):
    whole = bytearray(received.read_bytes())
    end = whole.rindex(b"PK\5\6")  # tells where the list of members would have started
    struct.pack_into("<I", whole, end + 16, struct.unpack_from("<I", whole, end + 16)[0] + 99)
    (tmp_path / "x.zip").write_bytes(whole)
    refused(project, tmp_path / "x.zip", "starts before the file does|no whole zip file")


def test_members_that_share_their_bytes_are_refused(received, project, tmp_path):
    """A bomb of one kernel that every entry points at: each member alone is small."""
    whole = bytearray(received.read_bytes())
    first = whole.index(b"PK\1\2")
    second = whole.index(b"PK\1\2", first + 4)
    struct.pack_into("<I", whole, second + 42, 0)  # starts where the first one starts
    (tmp_path / "x.zip").write_bytes(whole)
    refused(project, tmp_path / "x.zip", "no whole zip file")


def test_a_member_that_is_too_large_is_refused(received, project, monkeypatch):
    monkeypatch.setattr("osnb.book.archive.checking.TEXT", 1000)
    refused(project, received, "bytes; 1,000 are allowed")


def test_more_bytes_than_the_disk_has_are_refused(received, project, monkeypatch):
    monkeypatch.setattr("osnb.book.archive.checking._free", lambda: 1000)
    refused(project, received, "it needs .* bytes; the disk has 1,000")


def test_a_byte_that_changed_on_the_way_is_refused_or_changes_nothing(received, project, tmp_path):
    """One bit at 60 places; what the zip does not check, such as a time, does no harm."""
    whole, rng = received.read_bytes(), random.Random(0)
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        (tmp_path / "x.zip").write_bytes(changed)
        before = listing(project.folder)
        try:
            archive.unpack(tmp_path / "x.zip")
        except ValueError:
            assert listing(project.folder) == before
        else:
            for run_json in (tmp_path / "away").glob("*/*/run.json"):
                found = project.folder / "runs" / run_json.relative_to(tmp_path / "away").parent
                ours = json.loads((found / "run.json").read_text())
                theirs = json.loads(run_json.read_text())
                assert {k for k in ours if ours[k] != theirs.get(k)} == OURS
            (project.folder / "runs").rename(tmp_path / f"read{rng.random()}")


def test_texts_that_are_long_in_all_rows_together_fill_the_memory_too(tmp_path, monkeypatch):
    import pandas as pd
    from finished import scores

    from osnb.book.archive import checking

    table = pd.concat([scores(0)] * 50, ignore_index=True).assign(group="a" * 900)
    table["sample"] = [f"s{i}" for i in range(200)]
    table.to_parquet(tmp_path / "scores.parquet")
    content = (tmp_path / "scores.parquet").read_bytes()
    assert checking._digest("runs/a/b/scores.parquet", content)
    monkeypatch.setattr(checking, "TABLE", 100_000)
    with pytest.raises(ValueError, match="holds more than a table of"):
        checking._digest("runs/a/b/scores.parquet", content)
