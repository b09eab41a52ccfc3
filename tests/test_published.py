"""The papers' numbers and lists, as printed: every file parses, every value knows its table."""

import csv
import re
from pathlib import Path

import pytest

import osnb
from osnb import hierarchy

PUBLISHED = Path(osnb.__file__).parent / "published"
FILES = sorted(PUBLISHED.rglob("*.csv"))

WNID = r"n\d{8}"
NAME = r"[A-Za-z][A-Za-z' .-]*"
ROLE = "known|negative|unknown"
RATE = r"[01]\.\d{3}"
DASH = "|"  # or an empty cell, where the paper prints none

# paper/table: how many rows, and what each cell of a column may read.
TABLES = {
    "palechor2023/classes": (
        877,
        {
            "protocol": "[123]",
            "role": ROLE,
            "superclass_wnid": WNID,
            "superclass_name": NAME,
            "wnid": WNID,
            "name": NAME,
        },
    ),
    "palechor2023/table1": (
        9,
        {
            "protocol": "[123]",
            "role": ROLE,
            "classes": r"\d+",
            "train": r"\d+" + DASH,
            "val": r"\d+" + DASH,
            "test": r"\d+",
        },
    ),
    "palechor2023/table2": (
        18,
        {
            "selection": "last|best",
            "protocol": "[123]",
            "loss": "S|BG|EOS",
            "epoch": r"[1-9]\d?|1[01]\d|120",
            "gamma_plus": RATE,
            "gamma_minus": RATE,
            "ccr_at_1e-3": RATE + DASH,
            "ccr_at_1e-2": RATE + DASH,
            "ccr_at_1e-1": RATE + DASH,
            "ccr_at_1": RATE + DASH,
        },
    ),
}


def read(table):
    with (PUBLISHED / f"{table}.csv").open(newline="", encoding="utf8") as lines:
        reader = csv.DictReader(lines, strict=True)
        return list(reader.fieldnames), list(reader)


def test_every_published_file_is_described_here_and_every_description_has_its_file():
    assert [str(f.relative_to(PUBLISHED).with_suffix("")) for f in FILES] == sorted(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_every_cell_reads_as_its_column_does(table):
    length, columns = TABLES[table]
    header, rows = read(table)
    assert header == list(columns)
    assert len(rows) == length
    for number, row in enumerate(rows, start=2):
        for column, pattern in columns.items():
            assert re.fullmatch(pattern, row[column] or ""), (table, number, column, row[column])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_are_plain_text_without_stray_characters(file):
    text = file.read_bytes().decode("utf8")
    assert text.endswith("\n")
    assert "\r" not in text
    assert not re.search(r"[\t ]+(,|\n)|,[\t ]|\n\n|\ufeff", text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_row_is_there_twice(file):
    rows = file.read_text().splitlines()
    assert len(rows) == len(set(rows))


def test_table_2_has_each_loss_in_each_protocol_at_the_last_and_the_best_epoch():
    _, rows = read("palechor2023/table2")
    keys = [(row["selection"], row["protocol"], row["loss"]) for row in rows]
    losses = ("S", "BG", "EOS")
    assert keys == [(s, p, loss) for s in ("last", "best") for p in "123" for loss in losses]
    assert {row["epoch"] for row in rows if row["selection"] == "last"} == {"120"}
    rates = [float(v) for row in rows for c, v in row.items() if re.match("gamma|ccr", c) and v]
    assert 0 <= min(rates) <= max(rates) <= 1


def test_table_2_accepts_more_known_samples_where_more_unknown_ones_are_let_through():
    for row in read("palechor2023/table2")[1]:
        ccr = [
            float(row[f"ccr_at_{fpr}"])
            for fpr in ("1e-3", "1e-2", "1e-1", "1")
            if row[f"ccr_at_{fpr}"]
        ]
        assert ccr == sorted(ccr)


def test_table_1_counts_the_classes_of_the_lists_and_50_test_images_of_each():
    _, classes = read("palechor2023/classes")
    for row in read("palechor2023/table1")[1]:
        members = [c for c in classes if all(c[k] == row[k] for k in ("protocol", "role"))]
        assert int(row["classes"]) == len(members)
        assert int(row["test"]) == 50 * len(members)
        assert bool(row["train"]) == bool(row["val"]) == (row["role"] != "unknown")


def test_names_in_the_class_lists_are_the_first_lemmas():
    for row in read("palechor2023/classes")[1]:
        assert row["name"] == hierarchy.name(row["wnid"])
        assert row["superclass_name"] == hierarchy.name(row["superclass_wnid"])
