"""Files for `osnb score`."""

import io
import os
import resource
import zipfile
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.tries import MEMORY, SPECIAL, command, folder, removed

N = 60
RNG = np.random.default_rng(0)
WORDS = ("score", "--resamples", "20")
BASE = {
    "labels": np.array([0, 1, 2, -2, -1] * 12),
    "pred": np.array([0, 1, 2, 0, 1] * 12),
    "mine": RNG.normal(size=N),
}


def frame(**columns) -> pd.DataFrame:
    """Sixty samples with one score, some columns otherwise or more."""
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(N)]})
    rows["class"] = [f"c{i % 5}" for i in range(N)]
    rows["label"], rows["pred"], rows["mine"] = BASE["labels"], BASE["pred"], BASE["mine"]
    return rows.assign(**columns)


def csv(rows: pd.DataFrame) -> bytes:
    return rows.to_csv(index=False).encode()


def parquet(rows: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    rows.to_parquet(sink)
    return sink.getvalue()


def npz(**arrays) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def typed(column: pa.Array, name: str = "x") -> bytes:
    """A parquet file with one more column, of any type of Arrow's."""
    table = pa.Table.from_pandas(frame(), preserve_index=False).append_column(name, column)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def zipped(name: str, content: bytes, **how) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", **how) as archive:
        archive.writestr(name, content)
    return sink.getvalue()


def header(shape: str, kind: str = "<f8") -> bytes:
    """What begins a member of an npz file."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


class Evil:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def damaged(good: bytes) -> dict[str, bytes]:
    half = len(good) // 2
    return {
        "empty": b"",
        "zero bytes": bytes(100),
        "half": good[:half],
        "no end": good[:-5],
        "every byte": bytes(range(256)),
        "brackets": b"[" * 50000,
        "backwards": good[::-1],
        "eight bytes": good[:8],
        "a byte flipped": good[:40] + bytes([good[40] ^ 255]) + good[41:],
        "bytes in the middle": good[:half] + b"\xff\xff\xff\xff" + good[half + 4 :],
    }


TABLES = {
    "no label": frame().drop(columns="label"),
    "no pred": frame().drop(columns="pred"),
    "no score": frame().drop(columns="mine"),
    "no rows": frame()[:0],
    "nan": frame(mine=[np.nan] + [1.0] * 59),
    "label nan": frame(label=[np.nan] + [0] * 59),
    "label -3": frame(label=-3),
    "label .5": frame(label=0.5),
    "label inf": frame(label=np.inf),
    "label 1e300": frame(label=1e300),
    "label a word": frame(label="cat"),
    "all unknown": frame(label=-2),
    "pred a word": frame(pred="x"),
    "2^53": frame(mine=2**53 + np.arange(N)),
    "uint64": frame(mine=np.uint64(2**63) + np.arange(N).astype(np.uint64)),
    "logits with a gap": frame(logit_0=1.0, logit_2=2.0),
    "an infinite logit": frame(logit_0=np.inf, logit_1=1.0, logit_2=1.0),
    "too few logits": frame(logit_0=1.0),
    "complex, as text": frame(mine=[f"{i}+1j" for i in range(N)]),
    "a date": frame(mine=pd.date_range("2001", periods=N)),
    "yes": frame(mine=True),
    "a word": frame(mine="a"),
}
STRANGE = {  # and right
    "one row": frame()[:1],
    "pred -1": frame(pred=-1),
    "inf": frame(mine=np.inf),
    "-inf": frame(mine=-np.inf),
    "constant": frame(mine=1.0),
    "5e-324": frame(mine=5e-324),
    "1.7e308": frame(mine=1.7e308),
    "a sample twice": frame(sample="x"),
    "a column of an escape": frame(**{"\x1b[2Jx": BASE["mine"]}),
    "a column [/red]": frame(**{"[/red]": BASE["mine"]}),
    "a column [bold]": frame(**{"[bold]x[/bold]": BASE["mine"]}),
    "a column of two lines": frame(**{"a\nb": BASE["mine"]}),
    "a column without name": frame(**{"": BASE["mine"]}),
    "a column of 100,000 letters": frame(**{"x" * 100000: BASE["mine"]}),
}
CSV = {
    "a column twice": b"label,pred,mine,mine\n0,0,1,2\n-2,0,1,2\n",
    "ragged": b"label,pred,mine\n0,0\n-2,0,1,2\n",
    "an open quote": b'label,pred,mine\n0,0,"1\n',
    "semicolons": b"label;pred;mine\n0;0;1\n-2;0;1\n",
    "thousands": b'label,pred,mine\n0,0,"1,000"\n-2,0,"2,000"\n',
    "utf-16": frame().to_csv(index=False).encode("utf-16"),
    "one line": b"x" * 3_000_000,
    "commas": b"," * 300000,
    "a header": b"label,pred,mine\n",
}
CSV_STRANGE = {
    "hexadecimal": b"label,pred,mine\n0x1,1,1\n-2,0,1\n",
    "a byte order mark": b"\xef\xbb\xbf" + csv(frame()),
    "whole": csv(frame()),
}
TYPED = {
    "lists": pa.array([[1.0]] * N),
    "structs": pa.array([{"a": 1}] * N),
    "decimals": pa.array([1] * N).cast(pa.decimal128(30, 2)),
    "bytes": pa.array([b"\xff"] * N),
    "nothing": pa.nulls(N),
    "half floats": pa.array(np.ones(N, np.float16)),
    "codes": pa.array(["a"] * N).dictionary_encode(),
    "maps": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
}
NPZ = {
    "pickled": npz(**BASE, x=np.array([Evil()], object)),
    "complex": npz(**BASE, x=np.ones(N) + 1j),
    "long doubles": npz(**BASE, x=np.ones(N, np.longdouble)),
    "records": npz(**BASE, x=np.zeros(N, [("a", "f8")])),
    "times": npz(**BASE, x=np.zeros(N, "M8[s]")),
    "no axis": npz(labels=np.array(3), pred=np.array(3), mine=np.array(1.0)),
    "labels of words": npz(labels=np.array(["a"] * N), logits=np.ones((N, 3))),
    "labels of 2^64 - 1": npz(**BASE | {"labels": np.full(N, 2**64 - 1, np.uint64)}),
    "labels of 2^62": npz(**BASE | {"labels": np.full(N, 2**62)}),
    "an empty member": zipped("a", b""),
    "no array": zipped("labels.npy", b"hello"),
    "a huge shape": zipped("labels.npy", header("(1000000000000,)")),
    "a shape below 0": zipped("labels.npy", header("(-1,)")),
    "a type that is none": zipped("labels.npy", header("(3,)", "os.system")),
    "a header of brackets": zipped(
        "labels.npy", b"\x93NUMPY\x01\x00" + (20000).to_bytes(2, "little") + b"(" * 20000
    ),
    "a bomb": zipped(
        "labels.npy",
        header("(300000000,)", "|i1") + bytes(300_000_000),
        compression=zipfile.ZIP_DEFLATED,
    ),
    "lzma": zipped("labels.npy", b"x", compression=zipfile.ZIP_LZMA),
    "an npy file": header("(1,)") + bytes(8),
}
LOGITS = {
    "three axes": np.ones((N, 3, 2)),
    "nan": np.full((N, 3), np.nan),
    "no class": np.ones((N, 0)),
    "complex": np.ones((N, 3)) + 1j,
    "words": np.full((N, 3), "x"),
    "objects": np.full((N, 3), None),
}


def _cases() -> Iterator[tuple[str, str, bytes, bool]]:
    """Name, suffix, content, and whether it may be used."""
    whole = {"csv": csv(frame()), "parquet": parquet(frame()), "npz": npz(**BASE)}
    for suffix, good in whole.items():
        for name, content in damaged(good).items():
            yield name, suffix, content, True  # what is left may be a file
    for suffix, write in (("csv", csv), ("parquet", parquet)):
        for name, rows in TABLES.items():
            # words and dates are no scores; names that no pred has are refused
            yield name, suffix, write(rows), False
        for name, rows in STRANGE.items():
            yield name, suffix, write(rows), True
    for name, content in (CSV | CSV_STRANGE).items():
        yield name, "csv", content, name in CSV_STRANGE
    yield "a column twice", "parquet", typed(pa.array(np.ones(N)), "mine"), False
    for name, column in TYPED.items():
        yield name, "parquet", typed(column), True
    for name, content in NPZ.items():
        yield name, "npz", content, False
    for name, logits in LOGITS.items():
        yield f"logits: {name}", "npz", npz(labels=BASE["labels"], logits=logits), False
    yield (
        "logits: whole numbers",
        "npz",
        npz(labels=BASE["labels"] % 3, logits=np.eye(3, dtype=int)[BASE["labels"] % 3]),
        True,
    )
    yield "yes and no", "npz", npz(**BASE, x=np.zeros(N, bool)), True
    yield "another suffix", "txt", csv(frame()), False


def tries() -> Iterator[tuple[str, str]]:
    place = folder()
    os.chdir(place)
    for name, suffix, content, taken in _cases():
        file = place / f"bad.{suffix}"
        file.write_bytes(content)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        why = command([*WORDS, file], [file.name], taken=taken)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
        why = why or (f"{grown:.1f} GB more memory" if grown > MEMORY else "")
        yield f"{suffix}: {name}", why or ("it ran code" if (place / "ran").exists() else "")
        file.unlink()
    for suffix in ("csv", "parquet", "npz"):
        file = place / f"bad.{suffix}"
        for name, make in SPECIAL.items():
            removed(file)
            make(file)
            yield f"{suffix}: {name}", command([*WORDS, file], [file.name])
