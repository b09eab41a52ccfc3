"""What an archive holds, by name; nothing else goes in, and nothing else comes out."""

import re

from osnb.repro import PLAIN

METADATA, MANIFEST, LOCK = "ro-crate-metadata.json", "manifest-sha256.txt", "requirements.lock"
RESULT = (
    r"(?:history|outputs|scores\w*)\.parquet|(?!(?:begun|run)\.json)[\w-]+\.(?:svg|csv|tex|json)"
)
IN_RUN = re.compile(
    rf"runs/({PLAIN})/({PLAIN})/(run\.json|executed\.ipynb|{RESULT})", flags=re.ASCII
)
BESIDE = re.compile(
    rf"notebooks/{PLAIN}\.ipynb|params/{PLAIN}/{PLAIN}\.yaml"
    rf"|{re.escape(METADATA)}|{re.escape(MANIFEST)}|{re.escape(LOCK)}"
)


def parts(name: str) -> tuple[str, str, str] | None:
    """Notebook, run and file of a member; none of one that is not a run's.

    Raises:
        ValueError: no archive of this project holds such a name.
    """
    if found := IN_RUN.fullmatch(name):
        return found.groups()
    if not BESIDE.fullmatch(name):
        raise ValueError(
            f"{name!r} has no place in an archive; it holds runs/NOTEBOOK/RUN/FILE (run.json, "
            "executed.ipynb, scores, history, svg, csv, tex, json), notebooks/, params/ and "
            f"{METADATA}, {MANIFEST}, {LOCK}"
        )
    return None
