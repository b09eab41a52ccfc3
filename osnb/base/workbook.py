"""Where the project lies, what its notebooks and params files declare, and how files are written.

What asks for `root` or `PACKAGE` calls it through this module, so that replacing `workbook.root`
replaces it everywhere.
"""

import ast
import hashlib
import json
import math
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, wraps
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

if TYPE_CHECKING:
    import zipfile

    import pandas as pd

PACKAGE = Path(__file__).parent.parent
INSTALLED = PACKAGE / "project"  # notebooks, params and goldens in the place of a clone, in a wheel
LOCAL = {"run", "data", "machine"}  # they change no number: names, places
# what two runs of one experiment may differ in: chance, and how a machine does the work
REPEATS = LOCAL | {"seed", "split", "devices", "threads"}
PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*"  # a name that is one everywhere: files, archives, shells
LARGE, RATIO = 64 << 20, 200  # of a zip's member larger than LARGE: its bytes by those in the zip
GROWS = f"would grow more than {RATIO}-fold when it is unpacked"
REGIONS = {"SOLUTION": "...", "HIDDEN TESTS": None}  # what stands in a region's place

UMASK = os.umask(0o077)  # asked once: to ask is to set it, for all threads
os.umask(UMASK)


def root() -> Path:
    """The project's folder, whatever the working folder: the nearest one with pyproject.toml.

    Where the package was installed from a wheel and there is no clone, it is `INSTALLED`.

    Raises:
        FileNotFoundError: neither the package nor the working folder lies in a project.
    """
    return _above(str(PACKAGE), os.getcwd())  # as text, since many ask: a path is slow to make


@cache
def _above(*starts: str) -> Path:
    for folder in (x for start in map(Path, starts) for x in (start, *start.parents)):
        if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir():
            return folder
    if INSTALLED.is_dir():
        return INSTALLED
    raise FileNotFoundError(
        f"no project (pyproject.toml beside notebooks/) above {' or '.join(map(str, starts))}: "
        "work in a clone of the project"
    )


def versions(*names: str) -> dict[str, str]:
    """Versions of those of the packages that are installed."""
    found = {}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def cores() -> int:
    """How many of the machine's cores this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def out() -> Path:
    """The folder that runs/, figures/ and report/ are written under: $OSNB_OUT, else the project.

    But the working folder where there is no clone, or where it is another one and holds runs/.
    """
    if os.environ.get("OSNB_OUT"):
        return Path(os.environ["OSNB_OUT"]).resolve()
    here = Path.cwd()
    return here if (here / "runs").is_dir() or root() == INSTALLED else root()


def data(folder: str, reader: str = "") -> Path:
    """Where data sets lie: the folder given, else $OSNB_DATA, else data/ in the project.

    Args:
        folder: its path, or "cifar10=/a textures=/b" for readers whose data lie elsewhere.
        reader: whose folder.
    """
    own = _folders(folder)
    folder = own.get(reader, "") if own else folder
    folder = folder or os.environ.get("OSNB_DATA") or root() / "data"
    return Path(os.path.expanduser(folder)).resolve()


def anywhere(folder: str) -> str:
    """A text for `data` that means the same in another working folder, such as a kernel's."""
    own, here = _folders(folder) or {"": folder}, os.getcwd()
    placed = {k: v if v[:1] in ("", "~") else os.path.join(here, v) for k, v in own.items()}
    if placed == own:
        return folder
    return placed.get("") or " ".join(f"{k}={shlex.quote(v)}" for k, v in placed.items())


def _folders(folder: str) -> dict[str, str]:
    """The folders of single readers in a text for `data`; none in one that is a folder."""
    try:
        words = shlex.split(folder) if re.match(r"\w+=", folder) else []
    except ValueError as error:
        raise ValueError(f"data is a folder, or READER=FOLDER ...; {error} in {folder!r}") from None
    return dict(word.partition("=")[::2] for word in words)


def experiments(notebook: str) -> dict[str, dict[str, Any]]:
    """All parameters that each params file of a notebook describes, by the file's stem."""
    files = sorted((root() / "params" / notebook).glob("*.yaml"))
    book = root() / "notebooks" / f"{notebook}.ipynb"
    defaults = declared(book) if book.is_file() else {}
    return {file.stem: defaults | params(file) for file in files}


def seed_all(seed: int) -> None:
    """Seed Python, numpy's global generator and, if it is loaded, torch."""
    import random
    import sys

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, for libraries that draw from it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


# How files are written, and what tells one from another.


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to that becomes `path` only when the block ends well.

    The file is written beside `path`, synced and renamed, so that a reader sees the old
    file or the new one, never a part; on an error the old file stays and the part is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.chmod(0o666 & ~UMASK)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def at_once(name: str, how: int) -> int:
    """An opener for `open` to which pipes and devices, which may never end, are empty files."""
    opened = os.open(name, how | getattr(os, "O_NONBLOCK", 0))
    kind = os.fstat(opened).st_mode
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return opened
    os.close(opened)
    return os.open(os.devnull, how)


def grows(member: "zipfile.ZipInfo") -> bool:
    """Whether a member of a zip is a bomb, by what the zip says of it; no more is unpacked."""
    return member.file_size > max(LARGE, RATIO * member.compress_size)


def digest(*parts: str | bytes | Path) -> str:
    """sha256, in hex, of texts, bytes and the contents of files, in the order given."""
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        total.update(len(data).to_bytes(8, "big"))  # so that ("ab", "c") is not ("a", "bc")
        total.update(data)
    return total.hexdigest()


def shown(folder: Path) -> Iterator[Path]:
    """Files below a folder, by their path from there; neither hidden nor in a hidden folder.

    A link to a folder is followed, unless that is one of those that hold the link.
    """
    for at, folders, names in os.walk(folder, followlinks=True):
        links = [x for x in folders if os.path.islink(os.path.join(at, x))]
        above = {os.path.realpath(each) for each in (at, *Path(at).parents)} if links else ()
        up = {x for x in links if os.path.realpath(os.path.join(at, x)) in above}
        folders[:] = [x for x in folders if x[0] != "." and x not in up]
        yield from (Path(at, x).relative_to(folder) for x in names if x[0] != ".")


def file_hash(path: Path) -> str:
    """sha256 of a file in hex, as the command sha256sum prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def verified(path: Path) -> Path:
    """The path of a file that ships with the package, once its bytes are the right ones.

    They are compared with SHA256SUMS beside it (`sha256sum -c` reads that too), once a process.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: its bytes are others.
    """
    sums = (path.parent / "SHA256SUMS").read_text().split()
    expected = dict(zip(sums[1::2], sums[::2], strict=True))[path.name]
    if (actual := file_hash(path)) != expected:
        raise ValueError(
            f"{path} is broken: need sha256 {expected}; got {actual}: take it from a fresh clone"
        )
    return path


def once_a_version(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Decorate a function of one file: it is called anew only when the file has changed."""
    kept = cache(lambda file, *_: read(file))

    @wraps(read)
    def of(file: Path) -> Any:
        version = file.stat()
        return kept(file, version.st_mtime_ns, version.st_size)

    return of


def as_json(content: Mapping) -> str:
    """`content` as indented json with sorted keys: equal contents give equal texts."""
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, aside and renamed."""
    with writing(path) as aside:
        aside.write_text(text, encoding="utf8")


def write_json(path: Path, content: Mapping) -> None:
    """Write `content` `as_json`, aside and renamed."""
    write_text(path, as_json(content))


def write_csv(path: Path, table: "pd.DataFrame", **how: Any) -> None:
    """Write a frame, without its index unless `how` says so, aside and renamed."""
    with writing(path) as aside:
        table.to_csv(aside, lineterminator="\n", **{"index": False} | how)


# What a notebook declares: its code cells, and its parameters held against their types.


def code_cells(notebook: Path, *, parameters: bool = True) -> list[str]:
    """The source of each code cell as students get it, the cells of a quiz left out.

    That is what the numbers of a run follow from: neither a solution nor a hidden test changes
    one. Left out are injected parameters and cells tagged `course`.

    Args:
        notebook: its path.
        parameters: whether the cell tagged `parameters` is wanted too.

    Raises:
        ValueError: a solution or a hidden test is not closed, or a cell is no Python.
    """
    skipped = {"injected-parameters", "course"} | (set() if parameters else {"parameters"})
    texts = []
    for number, cell in enumerate(cells(notebook, "code"), start=1):
        if not skipped & cell["tags"]:
            texts.append(cleared(cell["source"], name=Path(notebook).name))
            _parsed(texts[-1], notebook, number)
    return texts


def cells(notebook: Path, kind: str = "") -> list[dict[str, Any]]:
    """The cells of a notebook, all or those of a kind: `source` as one text, `tags` as a set.

    Raises:
        ValueError: it is no whole notebook.
    """
    try:
        found = json.loads(Path(notebook).read_text(encoding="utf8"))["cells"]
        wanted = [cell for cell in found if kind in ("", cell["cell_type"])]
        tags = [{*cell.get("metadata", {}).get("tags", [])} for cell in wanted]
        pairs = zip(wanted, tags, strict=True)
        return [cell | {"source": "".join(cell["source"]), "tags": x} for cell, x in pairs]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{notebook} is no whole notebook ({error!r})") from None


def _parsed(text: str, notebook: Path, number: int) -> ast.Module:
    """The tree of a cell's code."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        line = getattr(error, "text", None) or ""
        magic = line.lstrip().startswith(("%", "!"))
        reason = (*error.args, "it is nested too deeply")[0]
        reason = "magics and shell commands hide what it uses" if magic else reason
        raise ValueError(
            f"{Path(notebook).name}: code cell {number} is no plain Python ({reason}): "
            f"{line.strip() or text[:60]!r}"
        ) from None


def cleared(text: str, *, name: str) -> str:
    """A cell's text without its regions, as nbgrader clears it.

    The lines from `### BEGIN SOLUTION` to `### END SOLUTION` become `...` with the indentation
    of the first; those from `### BEGIN HIDDEN TESTS` to `### END HIDDEN TESTS` go.

    Args:
        text: of the cell.
        name: of the notebook, for the error.

    Raises:
        ValueError: a region has one end only, or begins in another one.
    """
    lines, inside = [], ""
    for line in text.split("\n"):
        begun = next((kind for kind in REGIONS if f"BEGIN {kind}" in line), "")
        ended = next((kind for kind in REGIONS if f"END {kind}" in line), "")
        if (begun and inside) or (ended and ended != inside):
            raise ValueError(f"{name} has a line {line.strip()!r} out of place in: {text[:60]!r}")
        if begun and REGIONS[begun]:
            lines.append(line[: len(line) - len(line.lstrip())] + REGIONS[begun])
        elif not (inside or begun or ended):
            lines.append(line)
        inside = begun or (inside if not ended else "")
    if inside:
        raise ValueError(f"{name} has '### BEGIN {inside}' without its END in: {text[:60]!r}")
    return "\n".join(lines)


def declared(notebook: Path) -> dict[str, Any]:
    """Names and defaults of the notebook's one cell tagged `parameters`.

    Raises:
        ValueError: there is no such cell, or more than one, or a default is no literal.
    """
    code = enumerate(cells(notebook, "code"), start=1)
    tagged = [(cell["source"], number) for number, cell in code if "parameters" in cell["tags"]]
    if len(tagged) != 1:
        raise ValueError(
            f"{Path(notebook).name} needs one cell tagged 'parameters'; it has {len(tagged)}"
        )
    values = {}
    ((text, number),) = tagged
    for statement in _parsed(text, notebook, number).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                values[name] = _literal(notebook, name, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _literal(notebook, name, value)
    return values


def _literal(notebook: Path, name: str, node: ast.expr) -> Any:
    with suppress(ValueError, TypeError):
        if isinstance(value := ast.literal_eval(node), str | int | float):
            return value
    raise ValueError(
        f"{Path(notebook).name}: the default of '{name}' must be a literal, of a text, a number, "
        f"True or False; got {ast.unparse(node)}"
    )


def params(file: Path) -> dict[str, Any]:
    """The content of a params file, read with the safe loader."""
    import yaml

    return yaml.safe_load(Path(file).read_text(encoding="utf8")) or {}


def variant(name: str, base: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """`name` and what tells `parameters` from those of `base`: NAME-seed3-split2."""
    changed = [key for key in parameters if key not in LOCAL and parameters[key] != base[key]]
    return "".join([name, *(difference(key, parameters[key]) for key in changed)])


def difference(key: str, value: Any) -> str:
    """What a run's name says of a parameter that differs: -seed3, -tails2+5 of the text "2 5".

    In a text a blank becomes +, and what is neither letter, digit, dot nor _ its bytes: =2F is /.
    So the name is plain, and other values give other names.
    """
    if isinstance(value, int | float):
        return f"-{key}{value}"
    quoted = quote_plus(str(value)).replace("-", "%2D").replace("~", "%7E")
    return f"-{key}{quoted}".replace("%", "=")


def checked(notebook: str, name: str, value: Any, default: Any) -> Any:
    """`value` if it has the type of the parameter's default; a whole number serves as float.

    Raises:
        ValueError: it has another type, or is infinite or no number.
    """
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        hint = ""
        if isinstance(value, str) and isinstance(default, float):
            hint = " (yaml reads 1e-3 as text; write 1.0e-3)"
        if isinstance(default, str) and value is not None:
            hint = " (a text that looks like something else needs quotes, and papermill's -r)"
        raise ValueError(
            f"parameter '{name}' of {notebook} is {type(default).__name__}, such as {default!r}; "
            f"got {value!r}{hint}"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"parameter '{name}' of {notebook} needs a finite number; got {value!r}")
    return value
