"""Malformed files for every parser: python -m tests.audit --seconds 600. Not part of make test.

Good files are mutated; whoever reads one must answer within ten seconds with a value, or with an
error that is expected and of one line. What breaks this is kept in tests/audit/, and tried first.
"""

import argparse
import io
import json
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from osnb.base import stamps, workbook
from osnb.book import record, run
from osnb.book.archive import checking
from osnb.book.cli import scores
from osnb.datasets import photographs

SLOW = 10  # seconds that an answer may take
KEPT = Path(__file__).parent / "audit"
SPLICES = (b"\0", b"\xff", b"[" * 5000, b"{" * 5000, b"-1", b"1e999", b"NaN", b'"', b"\x1b[2J")
SPLICES += (b"&a [*a, *a]", b"\xed\xa0\x80", b"9" * 400, b"null", b"\r\n", b",")


def good(folder: Path) -> dict:
    """By name: bytes of a good file, its suffix, and who reads it."""
    frame = pd.DataFrame({"label": [0, 1, -2] * 5, "pred": [0, 1, 0] * 5, "s": np.arange(15.0)})
    parquet, npz, photo = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    np.savez(npz, **{name: frame[name].to_numpy() for name in frame})
    Image.new("RGB", (40, 30)).save(photo, "JPEG")
    record.write(folder, {"notebook": "n", "run": "r", "state": "done", "parameters": {"x": 1}})
    root = workbook.root()
    params = root / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    stamp = next((root / "figures").glob("*/*/*.json"))
    book = root / "notebooks" / "00_tour.ipynb"
    own = (lambda file: scores._own(file, 0, ()), (ValueError, OSError))
    return {
        "params": (params.read_bytes(), f"12_palechor_train/{params.name}", run.plan, ValueError),
        "notebook": (book.read_bytes(), "x.ipynb", workbook.declared, ValueError),
        "executed": (book.read_bytes(), "y.ipynb", _executed, ValueError),
        "csv": (frame.to_csv(index=False).encode(), "x.csv", *own),
        "parquet": (parquet.getvalue(), "x.parquet", *own),
        "npz": (npz.getvalue(), "x.npz", *own),
        "run.json": ((folder / "run.json").read_bytes(), "r/run.json", _record, ()),
        "stamp": (stamp.read_bytes(), "x.json", stamps.read, ()),
        "photograph": (photo.getvalue(), "x.jpeg", _photograph, ValueError),
    }


def _executed(file: Path):
    return checking._stated(file.name, file.read_bytes())


def _record(file: Path):
    return record.read(file.parent)


def _photograph(file: Path):
    return photographs.resized(file.read_bytes(), str(file), 16)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The bytes with a few flips, cuts, repeats and splices."""
    for _ in range(draw.randint(1, 4)):
        at, end = sorted(draw.randrange(len(content) + 1) for _ in "ab")
        end = min(end, at + draw.choice((1, 8, 10**9)))
        new = draw.choice((b"", content[at:end] * 3, draw.randbytes(2), draw.choice(SPLICES)))
        content = (content[:at] + new + content[end:])[: 1 << 22]
    return content


def fault(file: Path, read, expected) -> str:
    """What is wrong with how a file is read; empty if nothing is."""
    signal.setitimer(signal.ITIMER_PROF, SLOW)  # of a processor: the machine may be busy
    try:
        read(file)
    except expected as error:
        return f"two lines: {error}" if "\n" in str(error).strip() else ""
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _late(*_):
    raise TimeoutError(f"no answer within {SLOW} s")


def main(seconds: float, seed: int) -> int:
    """The number of files whose reader broke; 1 at most is counted of a kind of fault."""
    signal.signal(signal.SIGPROF, _late)
    warnings.simplefilter("ignore")
    tried, faults, began = Counter(), {}, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        kinds = good(Path(name))
        waiting = [(f.name.partition("-")[0], f.read_bytes()) for f in sorted(KEPT.glob("*-*"))]
        while waiting or time.monotonic() - began < seconds:
            draw = random.Random(seed)
            kind = draw.choice([*kinds])
            content, place, read, expected = kinds[kind]
            if waiting:
                kind, content = waiting.pop()
                _, place, read, expected = kinds[kind]
            else:
                content, seed = mutated(content, draw), seed + 1
            file = Path(name) / place
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
            tried[kind] += 1
            if why := fault(file, read, expected):
                if (kind, why[:40]) not in faults:
                    KEPT.mkdir(exist_ok=True)
                    (KEPT / f"{kind}-{stamps.digest(content)[:12]}").write_bytes(content)
                faults[kind, why[:40]] = why
    print(json.dumps({"tried": tried, "seeds to": seed, "faults": [*faults.values()]}, indent=1))
    return len(faults)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--seed", type=int, default=0)
    sys.exit(min(main(**vars(asked.parse_args())), 1))
