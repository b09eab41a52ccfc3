"""The papers' numbers and lists, as printed: what is edited has its form, tables agree."""

import csv
import re
from pathlib import Path

import pytest

import osnb

PUBLISHED = Path(osnb.__file__).parent / "published"

DASH = "|"  # or an empty cell, where the paper prints none
PLACE = r"(Tables?|Figure|Sec\.|App\.) [A-Z0-9][0-9A-Za-z.]*"
PLACE += r"(, ((Table|Figure|Sec\.|App\.) )?[A-Z0-9][0-9a-z.]*)*"

CLAIMS = {
    "id": "(palechor|vaze|kim)(-[a-z0-9.]+)+",
    "section": f"Abstract|(Abstract, )?{PLACE}",
    "stated": "abstract|text|table|law",
    "claim": r"[A-Z(].*\.",
    "quote": r"[A-Za-z(].*",
    "number": ".+" + DASH,
    "measure": r"[a-z0-9_.;| ]+" + DASH,
    "at": r"([a-z]+=[a-z0-9_.*|+-]+( and [a-z]+)*;?( |$))*",
    "left": r"[A-Za-z0-9+|_. ();@=,]+" + DASH,
    "relation": "(some )?[<>~](; [<>])*" + DASH,
    "right": r"[A-Za-z0-9+|_. ();@=,-]+" + DASH,
    "margin": r"-?0\.\d+|[a-z+ ]+ @ measure=[a-z_]+" + DASH,
    "apart": r"0\.\d+" + DASH,
    "predicate": "[a-z][a-z0-9_]*" + DASH,
    "scope": r"[a-z0-9,+-]+( [a-z0-9,+-]+)*",
    "runs": "published|12_palechor_train|21_vaze_train|31_kim_train",
}
NAME_OF = r"[A-Za-z0-9(][A-Za-z0-9 ,()+-]*"
BENCHMARKS = {"benchmark": "[a-z][a-z0-9_]+", "place": "[a-z][a-z0-9+-]+"}
ROWS = {"place": "cifar100" + DASH, "printed": NAME_OF, "method": "[a-z0-9_]+"}
ROWS |= {"regime": "baseline|strong", "rule": "[a-z_]+" + DASH}
SOURCES = {
    "benchmark": "closed|closed_ten|cifar40|imagenet200" + DASH,
    "source": "[a-z0-9_]+",
    "printed": "[a-z0-9-]+",
}

# what a contributor edits: what each cell of a column may read
EDITED = {f"{paper}/benchmarks": BENCHMARKS for paper in ("palechor2023", "kim2021")}
EDITED |= {"vaze2022/benchmarks": BENCHMARKS | {"family": "standard|ssb|ood"}}
EDITED |= {f"{paper}/rows": ROWS for paper in ("palechor2023", "vaze2022", "kim2021")}
EDITED |= {f"{paper}/sources": SOURCES for paper in ("vaze2022", "kim2021")}
EDITED |= {f"{paper}/claims": CLAIMS for paper in ("palechor2023", "vaze2022", "kim2021")}


def read(table):
    with (PUBLISHED / f"{table}.csv").open(newline="", encoding="utf8") as lines:
        reader = csv.DictReader(lines, strict=True)
        return list(reader.fieldnames), list(reader)


@pytest.mark.parametrize("table", EDITED)
def test_every_cell_of_what_is_edited_reads_as_its_column_does(table):
    header, rows = read(table)
    assert header == list(EDITED[table])
    for number, row in enumerate(rows, start=2):
        for column, pattern in EDITED[table].items():
            assert re.fullmatch(pattern, row[column] or ""), (table, number, column, row[column])


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


def test_no_oscr_of_table_3_is_above_its_accuracy_or_its_auroc():
    values = {
        (row["method"], row["dataset"], row["open_split"], row["metric"]): float(row["value_pct"])
        for row in read("vaze2022/table3")[1]
    }
    oscr = {key: value for key, value in values.items() if key[3] == "oscr"}
    assert len(oscr) == 16
    for (method, dataset, split, _), value in oscr.items():
        assert value <= values[method, dataset, "", "accuracy"]
        assert value <= values[method, dataset, split, "auroc"]


@pytest.mark.parametrize("table", ["kim2021/table5", "kim2021/table6"])
def test_each_method_of_the_unified_benchmark_has_the_same_columns(table):
    columns = {}
    for row in read(table)[1]:
        columns.setdefault(row["method"], []).append((row["task"], row["dataset"], row["metric"]))
        assert (row["n_runs"] == "1") == (row["method"] == "Ensemble") == (not row["std"])
    assert len(columns) == 9
    assert all(each == columns["Baseline"] for each in columns.values())


def test_the_readme_of_the_unified_benchmark_has_the_rows_of_table_2():
    readme, table = (read(f"kim2021/{name}")[1] for name in ("readme", "table2"))
    assert [row["dataset"] for row in readme] == [row["dataset"] for row in table]


@pytest.mark.parametrize("paper", ["palechor2023", "vaze2022", "kim2021"])
def test_each_claim_has_a_name_of_its_own_paper(paper):
    names = [row["id"] for row in read(f"{paper}/claims")[1]]
    assert len(set(names)) == len(names)
    assert all(name.startswith(f"{re.sub('[0-9]', '', paper)}-") for name in names)
