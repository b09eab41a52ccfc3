"""The report: a static site of all artefacts, built by Sphinx, read without a network."""

import json
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from filelock import FileLock

from osnb import publish, record, repro
from osnb.report.facts import follows
from osnb.report.source import prepare
from osnb.verify import verify

VERDICTS = "verify.json"  # in report/: what `verify` said of the artefacts when it was made
INPUTS = "inputs.txt"  # in report/: the hash of what it was made from
BUILDERS = ("sphinx", "myst-nb", "furo", "sphinx-mathjax-offline")


def build() -> Path:
    """Make report/ under `repro.out()` from figures, runs, notebooks and params files.

    Nothing is executed. If nothing changed since the last time, nothing is done; else the pages
    that changed are made again in runs/.report/, and report/ is replaced when all went well.

    Returns:
        The path of index.html.

    Raises:
        ChildProcessError: Sphinx failed or warned; the message is what it said.
    """
    work, target = repro.out() / "runs" / ".report", repro.out() / "report"
    work.mkdir(parents=True, exist_ok=True)
    with FileLock(work / "lock"):
        inputs = fingerprint()
        if _built(target) != inputs:
            verdicts = verify()
            if not prepare(work / "source", verdicts):
                shutil.rmtree(work / "html", ignore_errors=True)
            _sphinx(work)
            _replace(work / "html", target, inputs, verdicts)
    return target / "index.html"


def remark(index: Path) -> str:
    """What the report says of its artefacts that do not follow; nothing if all do."""
    verdicts = json.loads(index.with_name(VERDICTS).read_text(encoding="utf8"))
    wrong = any(row["verdict"] != "follows" for row in verdicts)
    return f"{follows(verdicts)}; osnb verify says why" if wrong else ""


def fingerprint() -> str:
    """Hash of everything that the report shows or follows from."""
    root, out = repro.root(), repro.out()
    runs = [out / "runs" / run["notebook"] / run["run"] for run in record.everything()]
    places = [  # a list, because root and out are usually the same folder
        (repro.PACKAGE, ("**/*.py", "**/*.csv", "report/**/*.css", "report/**/*.md")),
        (root, ("notebooks/*.ipynb", "params/*/*.yaml", "figures/*/*/*")),
        (out, ("figures/*/*/*",)),
    ]
    files = [file for run in runs for file in (run / "run.json", run / "executed.ipynb")]
    results = [x for run in runs for kind in publish.RESULTS for x in sorted(run.glob(kind))]
    times = [f"{x} {x.stat().st_size} {x.stat().st_mtime_ns}" for x in results]  # for `verify`
    files += [file for base, globs in places for each in globs for file in base.glob(each)]
    found = sorted({file for file in files if file.is_file()})
    versions = [f"{name} {metadata.version(name)}" for name in BUILDERS]
    return repro.digest(*versions, *times, *(part for file in found for part in (str(file), file)))


def _built(target: Path) -> str:
    whole = (target / "index.html").is_file() and (target / INPUTS).is_file()
    return (target / INPUTS).read_text() if whole else ""


def _sphinx(work: Path) -> None:
    """Build work/html from work/source; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-j", "2", "--no-color"]
    folders = ["-d", work / "doctrees", work / "source", work / "html"]
    ended = subprocess.run([*command, *folders], capture_output=True, text=True)
    if ended.returncode:  # what it made is no base: pages left unread next time warn no more
        shutil.rmtree(work / "doctrees", ignore_errors=True)
        said = (ended.stderr or ended.stdout).strip()
        raise ChildProcessError(f"the report was not made, the one before stays; Sphinx:\n{said}")


def _replace(html: Path, target: Path, inputs: str, verdicts: list[dict[str, str]]) -> None:
    """Put a copy of `html` in the place of `target`, which is whole before and after."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".report-") as folder:
        aside = shutil.copytree(html, Path(folder) / "new", ignore=shutil.ignore_patterns(".*"))
        (aside / INPUTS).write_text(inputs)
        (aside / VERDICTS).write_text(json.dumps(verdicts, indent=1) + "\n", encoding="utf8")
        if target.exists():
            target.rename(Path(folder) / "old")
        aside.rename(target)
