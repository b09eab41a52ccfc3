"""Runs of an archive into runs/ and figures/, each whole or not at all."""

import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from osnb import record, repro
from osnb.archive.checking import check, made_so, opened, read
from osnb.archive.names import parts
from osnb.publish import publish, results


def unpack(file: Path, *, force: bool = False) -> dict[str, str]:
    """Put the runs of an archive where `osnb run` would have left them.

    Everything is checked before anything is written.

    Args:
        file: an archive that `pack` wrote.
        force: whether other runs of these names may be replaced; they go to `superseded/`.

    Returns:
        What became of each run, by NOTEBOOK/RUN.

    Raises:
        ValueError: the archive is refused; the message says why.
    """
    with opened(file) as archive:
        runs = check(archive)
        here = {key: _standing(key, run) for key, run in runs.items()}
        running = [key for key, word in here.items() if word == "running"]
        other = [key for key, word in here.items() if word == "other"]
        if running:
            raise ValueError(f"{', '.join(running)} is running here")
        if other and not force:
            raise ValueError(f"{', '.join(other)} is here with other content; --force replaces it")
        source = {"archive": file.name, "sha256": repro.file_hash(file), "when": record.now()}
        for key, run in runs.items():
            if here[key] != "same":
                _place(archive, key, run | {"imported": source})
            publish(_folder(key), repro.out() / "figures" / key)
    words = {"same": "here already, the same", "other": "imported, replacing another"}
    return {
        key: words.get(here[key], "imported") + ("" if made_so(run) else "; made with other code")
        for key, run in runs.items()
    }


def _folder(key: str) -> Path:
    return repro.out() / "runs" / key


def _standing(key: str, run: dict[str, Any]) -> str:
    """What is here under that name: nothing, the same, another run, or one that is running."""
    folder = _folder(key)
    if not folder.exists():
        return "nothing"
    found = record.read(folder) or {}
    if found.get("state") in {"queued", "running"}:
        return "running"
    alike = all(found.get(k) == run[k] for k in ("state", "code", "inputs", "outputs"))
    whole = (folder / "executed.ipynb").is_file() and results(folder) == run["outputs"]
    return "same" if alike and whole else "other"


def _place(archive: zipfile.ZipFile, key: str, run: dict[str, Any]) -> None:
    """Write the run aside, run.json last, and rename it into its place."""
    target = _folder(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}-"
    with record.lock(target), TemporaryDirectory(dir=target.parent, prefix=prefix) as aside:
        made, old = Path(aside) / "made", Path(aside) / "old"
        made.mkdir()
        for info in archive.infolist():
            found = parts(info.filename)
            if found and "/".join(found[:2]) == key and found[2] != "run.json":
                (made / found[2]).write_bytes(read(archive, info))
        record.write(made, run)
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
        if old.exists():
            shutil.rmtree(old / "superseded", ignore_errors=True)
            old.rename(target / "superseded")
