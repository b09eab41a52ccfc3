"""Malformed files for every parser: python -m tests.audit --seconds 600. Not part of make test.

Good files are mutated; whoever reads one must answer within ten seconds with a value, or with an
error that is expected, is of one line and names the file. `refused` counts the latter. What breaks
this is kept in tests/audit/, and tried first.
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
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from osnb import models
from osnb.base import stamps, workbook
from osnb.book import record, run, zips
from osnb.book.archive import checking
from osnb.book.cli import scores
from osnb.datasets import own, photographs, readers, small
from osnb.models import outside
from osnb.train import checkpoint

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
    Image.new("RGB", (40, 40)).save(photo, "JPEG")
    record.write(folder, {"notebook": "n", "run": "r", "state": "done", "parameters": {"x": 1}})
    root = workbook.root()
    params = root / "params" / "12_palechor_train" / "mini_p2_softmax.yaml"
    stamp = next((root / "figures").glob("*/*/*.json"))
    book = root / "notebooks" / "00_tour.ipynb"
    table = (lambda file: scores._own(file, 0, ()), (ValueError, OSError))
    return {
        "params": (params.read_bytes(), f"12_palechor_train/{params.name}", run.plan, ValueError),
        "notebook": (book.read_bytes(), "x.ipynb", workbook.declared, ValueError),
        "executed": (book.read_bytes(), "y.ipynb", _executed, ValueError),
        "csv": (frame.to_csv(index=False).encode(), "x.csv", *table),
        "parquet": (parquet.getvalue(), "x.parquet", *table),
        "npz": (npz.getvalue(), "x.npz", *table),
        "run.json": ((folder / "run.json").read_bytes(), "r/run.json", _record, ()),
        "stamp": (stamp.read_bytes(), "x.json", stamps.read, ()),
        "photograph": (photo.getvalue(), "x.jpeg", _photograph, ValueError),
        "images": (LISTED, "y.csv", own.listed, ValueError),
        "classes": (CLASSES, "flat/LOC_val_solution.csv", _classes, ValueError),
        "dataset": (_packed(photo.getvalue()), "x/set.parquet", _set, ValueError),
        "checkpoint": (_checkpoint(folder), "x.pt", checkpoint.load, ValueError),
        "weights": (_checkpoint(folder), "y.pt", _weights, ValueError),
        "archive": (_archive(), "x.zip", _unpacked, ValueError),
    }


LISTED = b"path,class,split,unit\na.png,cat,train,1\nb.png,dog,test,2\nc.png,cat,val,3\n"
CLASSES = b"ImageId,PredictionString\nv_1,n01440764 1 2 3 4\nv_2,n01440765 5 6 7 8\n"


def _classes(file: Path):
    for name in ("v_1.JPEG", "v_2.JPEG"):
        (file.parent / "val" / name).parent.mkdir(exist_ok=True)
        (file.parent / "val" / name).touch()
    return readers._flat(file.parent, "val")


def _packed(photo: bytes) -> bytes:
    rows = pd.DataFrame({"split": ["train", "test"], "label": [0, 1], "jpeg": [photo, photo]})
    content = io.BytesIO()
    rows.to_parquet(content)
    return content.getvalue()


def _set(file: Path):
    images = small.packed(file.parent, file=file.name, column="label", side=40)
    return images.read(np.arange(len(images.rows)))


def _checkpoint(folder: Path) -> bytes:
    checkpoint.save(
        models.mlp(classes=3, features=4, channels=1, size=4).state_dict(), folder / "c"
    )
    return (folder / "c").read_bytes()


def _weights(file: Path):
    return outside.weighted(models.mlp(classes=3, features=4, channels=1, size=4), file)


def _archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("ro-crate-metadata.json", "{}")
        archive.writestr("runs/00_tour/mini/run.json", '{"state": "done"}')
    return content.getvalue()


def _unpacked(file: Path):
    with zips.opened(file) as archive:
        return checking.check(archive)


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


def fault(file: Path, read, expected) -> tuple[str, bool]:
    """What is wrong with how a file is read, empty if nothing is; and whether it was refused."""
    signal.setitimer(signal.ITIMER_PROF, SLOW)  # of a processor: the machine may be busy
    try:
        read(file)
    except expected as error:
        said = str(error).strip()
        if "\n" in said:
            return f"two lines: {said}", True
        return ("" if file.name in said else f"names no file: {said[:200]}"), True
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}", True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "", False


def _late(*_):
    raise TimeoutError(f"no answer within {SLOW} s")


def main(seconds: float, seed: int, inputs: int) -> int:
    """The number of files whose reader broke; 1 at most is counted of a kind of fault."""
    signal.signal(signal.SIGPROF, _late)
    warnings.simplefilter("ignore")
    tried, refused, faults, slowest = Counter(), Counter(), {}, 0.0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        kinds = good(Path(name))
        waiting = [(f.name.partition("-")[0], f.read_bytes()) for f in sorted(KEPT.glob("*-*"))]
        while waiting or (time.monotonic() - began < seconds and tried.total() < inputs):
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
            before = time.process_time()
            why, no = fault(file, read, expected)
            refused[kind] += no
            slowest = max(slowest, time.process_time() - before)
            if why:
                if (kind, why[:40]) not in faults:
                    KEPT.mkdir(exist_ok=True)
                    (KEPT / f"{kind}-{stamps.digest(content)[:12]}").write_bytes(content)
                faults[kind, why[:40]] = why
    told = {"tried": tried, "refused": refused, "in all": tried.total(), "seeds to": seed}
    told |= {"slowest, s": round(slowest, 2), "faults": [*faults.values()]}
    print(json.dumps(told, indent=1))
    return len(faults)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--inputs", type=int, default=10**9, help="files at most")
    sys.exit(min(main(**vars(asked.parse_args())), 1))
