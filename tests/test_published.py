"""The papers' numbers and lists, as printed: every file parses, every value knows its table."""

import csv
import re
from pathlib import Path

import pytest

import osnb
from osnb.protocols import hierarchy

PUBLISHED = Path(osnb.__file__).parent / "published"
FILES = sorted(PUBLISHED.rglob("*.csv"))

WNID = r"n\d{8}"
NAME = r"[A-Za-z][A-Za-z' .-]*"
ROLE = "known|negative|unknown"
RATE = r"[01]\.\d{3}"
DASH = "|"  # or an empty cell, where the paper prints none
COUNT = r"[1-9]\d*"
INDEX = r"0|[1-9]\d*"
PERCENT = r"\d\d\.\d"
GAIN = r"[+-]\d+\.\d"
POINTS = r"\d{1,3}\.\d\d"  # percent, or AURC times 1000
CITATION = r"[A-Z][A-Za-z]+ (et al\.|& [A-Z][a-z]+), 20\d\d[ab]?|this paper"
STANDARD = r"MNIST|SVHN|CIFAR10|CIFAR\+10|CIFAR\+50|TinyImageNet"
SSB = "CUB|SCars|FGVC-Aircraft|ImageNet"
FLAG = "0|1"

PLACE = r"(Tables?|Figure|Sec\.|App\.) [A-Z0-9][0-9A-Za-z.]*(, (App\. )?[A-Z0-9.]+)*"

CLAIMS = {
    "id": "(palechor|vaze|kim)(-[a-z0-9.]+)+",
    "section": f"Abstract|{PLACE}",
    "stated": "abstract|text|table|law",
    "claim": r"[A-Z].*\.",
    "number": ".+" + DASH,
    "measure": r"[a-z0-9_.;| ]+" + DASH,
    "at": r"([a-z]+=[a-z0-9_.*|+-]+;?( |$))*",
    "left": r"[A-Za-z+| ();@=]+" + DASH,
    "relation": "[<>~]" + DASH,
    "right": r"[A-Za-z0-9+|_. ();@=]+" + DASH,
    "margin": r"0\.\d+" + DASH,
    "apart": r"0\.\d+" + DASH,
    "predicate": "[a-z][a-z0-9_]*" + DASH,
    "scope": r"[a-z0-9,+-]+( [a-z0-9,+-]+)*",
    "runs": "published|12_palechor_train|21_vaze_train|31_kim_train",
}
KIM_COUNTS = {
    "benchmark": "CIFAR|ImageNet",
    "role": "in-distribution|external|near-ood|far-ood",
    "dataset": r"[A-Z][A-Za-z0-9 -]+",
    "train": COUNT + DASH,
    "validation": COUNT + DASH,
    "test": COUNT + DASH,
}
KIM_RESULTS = {
    "method": "Baseline|CRL|EDL|MCdropout|Ensemble|Augmix|ODIN|OE|OpenMax",
    "task": "classification|(unknown|misclassification|near_ood|far_ood)_detection",
    "dataset": r"[A-Z][A-Za-z0-9 -]+( \(all\))?",
    "metric": "ACC|AURC_x1000|FPR_95TPR|AUROC",
    "better": "up|down",
    "mean": POINTS,
    "std": POINTS + DASH,
    "n_runs": "1|5",
    "printed_emphasis": "best|best_without_OE" + DASH,
}

NAME_OF = r"[A-Za-z0-9(][A-Za-z0-9 ,()+-]*"
BENCHMARKS = {"benchmark": "[a-z][a-z0-9_]+", "place": "[a-z][a-z0-9+-]+"}
ROWS = {"place": "cifar100" + DASH, "printed": NAME_OF, "method": "[a-z0-9_]+"}
ROWS |= {"regime": "baseline|strong", "rule": "[a-z_]+" + DASH}
SOURCES = {"benchmark": "closed" + DASH, "source": "[a-z0-9_]+", "printed": "[a-z0-9-]+"}

# paper/table: how many rows, and what each cell of a column may read.
TABLES = {
    "palechor2023/benchmarks": (3, BENCHMARKS),
    "palechor2023/rows": (3, ROWS),
    "vaze2022/benchmarks": (11, BENCHMARKS | {"family": "standard|ssb|ood"}),
    "vaze2022/rows": (21, ROWS),
    "vaze2022/sources": (2, SOURCES),
    "kim2021/benchmarks": (2, BENCHMARKS),
    "kim2021/rows": (10, ROWS),
    "kim2021/sources": (5, SOURCES),
    "kim2021/claims": (20, CLAIMS),
    "kim2021/classes_far": (
        722,
        {
            "source": "Food-101|Caltech-256|Places-365",
            "class": r"[a-z][a-z0-9_/ -]+",
            "role": "kept|removed",
        },
    ),
    "kim2021/classes_imagenet": (
        1000,
        {"wnid": WNID, "role": "in-distribution|external|near (proposed|discarded)|dropped"},
    ),
    "kim2021/classes_tinyimagenet158": (
        200,
        {
            "wnid": WNID,
            "role": "kept|removed",
            "matched_cifar100_name": f"[a-z_]+@{WNID}" + DASH,
        },
    ),
    "earlier_studies/kim2021": (  # gathered here: the paper's own Table 1 could not be read
        10,
        {
            "method": r"[A-Z][A-Za-z ]+",
            "study": r"[A-Z][a-z]+ (et al\.|& [A-Z][a-z]+)",
            "year": r"20(1[6-9]|20)",
            "venue": "CVPR|ICLR|ICML|NeurIPS",
            **dict.fromkeys(("misclassification", "near", "far"), "yes|no|not established"),
            "source": r"[A-Za-z].{20,}",
        },
    ),
    "kim2021/per_class": (
        7,
        {"benchmark": "CIFAR|ImageNet", "dataset": r"[A-Z][A-Za-z0-9 -]+"}
        | dict.fromkeys(("train", "validation", "test"), COUNT + DASH),
    ),
    "kim2021/readme": (13, KIM_COUNTS),  # the authors' README at eff1710, under Table 2's names
    "kim2021/table2": (13, KIM_COUNTS),
    "kim2021/table3": (
        100,
        {
            "superclass": "[a-z_0-9-]+",
            "coarse_label": r"1?\d",
            "class": "[a-z_]+",
            "fine_label": r"\d\d?",
            "split_established": "CIFAR-40|CIFAR-60" + DASH,
            "split_proposed": "CIFAR-40|CIFAR-60",
        },
    ),
    "kim2021/table4": (
        22,
        {
            "variation_type": "plural|spacing|abbreviation_or_possessive",
            "dataset": "Food-101|Caltech-256|Places-365",
            "original": "[a-z ]+",
            "variation": "[a-z ']+",
        },
    ),
    "kim2021/table5": (117, KIM_RESULTS),
    "kim2021/table6": (99, KIM_RESULTS),
    "known_runs/vaze2022": (  # what others report; beside the paper's own tables, in no training
        8,
        {
            "source": r"github\.com/[A-Za-z0-9_/]+ issue \d+ \(20\d\d-\d\d-\d\d\)|authors README",
            "run": r"M[A-Za-z]+, [a-zA-Z].*",
            "dataset": f"{STANDARD}|{SSB}",
            "split_idx": "[0-4]|mean" + DASH,
            "open_split": "Easy|Hard" + DASH,
            "accuracy_pct": r"\d\d\.\d{1,3}",
            "auroc_pct": r"\d\d\.\d{1,3}",
            "oscr_pct": r"\d\d\.\d{1,3}" + DASH,
            "note": r"[a-z].*",
        },
    ),
    "palechor2023/claims": (23, CLAIMS),
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
    "vaze2022/claims": (24, CLAIMS),
    "vaze2022/correlations": (
        7,
        {
            "name": "[a-z0-9-]+",
            "where": r"Figure \d[ab]?|Table 5 and Figure 4",
            "section": r"Sec\. 3\.[12]|App\. (C|F\.1)",
            "setting": r"[A-Za-z].*",
            "open_split": "Easy|Hard" + DASH,
            "pearson_rho": r"0\.\d\d|1\.00",
        },
    ),
    "vaze2022/splits_aircraft": (
        100,
        {
            "class_index": INDEX,
            "variant": r"[A-Z\d][A-Za-z\d/ -]*",
            "family": r"[A-Z\d][A-Za-z\d/ -]*",
            "manufacturer": "[A-Za-z][A-Za-z ]+",
            "split": "known|easy|medium|hard",
            "order": INDEX + DASH,
            "paired": r"\d+(\|\d+)*" + DASH,
        },
    ),
    "vaze2022/splits_cars": (
        196,
        {
            "class_index": INDEX,
            "class": r"[A-Za-z][A-Za-z\d. -]+ (19|20)\d\d",
            "split": "known|easy|medium|hard",
            "order": INDEX + DASH,
        },
    ),
    "vaze2022/splits_cub": (
        200,
        {
            "class_index": INDEX,
            "class": "[A-Z][A-Za-z_]+",
            "split": "known|easy|medium|hard",
            "order": INDEX + DASH,
            "paired": INDEX + DASH,
        },
    ),
    "vaze2022/splits_imagenet": (
        3000,
        {
            "wnid": WNID,
            "split": "known|easy|hard",
            "order": INDEX,
            "in_ssb_package": FLAG + DASH,
            "relation": "ancestor|descendant" + DASH,
        },
    ),
    "vaze2022/splits_standard": (
        1490,
        {
            "dataset": STANDARD,
            "split": "[0-4]",
            "role": "known|unknown",
            "order": INDEX + DASH,
            "source": "MNIST|SVHN|CIFAR10|CIFAR100|TinyImageNet",
            "class_index": INDEX,
            "class": rf"[0-9]|[a-z_]+|{WNID}",
            "train_images": COUNT + DASH,
            "test_images": COUNT,
        },
    ),
    "vaze2022/splits_summary": (
        30,
        {
            "dataset": STANDARD,
            "split": "[0-4]",
            "known_classes": COUNT,
            "unknown_classes": COUNT,
            "known_train_images": COUNT,
            "known_test_images": COUNT,
            "unknown_test_images": COUNT,
        },
    ),
    "vaze2022/table1": (
        48,
        {
            "method": r"[A-Z(][A-Za-z()+ ]+",
            "citation": CITATION + DASH,
            "source": "cited|this paper",
            "dataset": STANDARD,
            "auroc_pct": PERCENT,
            "printed_delta": GAIN + DASH,
        },
    ),
    "vaze2022/table2": (
        16,
        {
            "dataset": "CUB|Stanford Cars|FGVC-Aircraft|ImageNet",
            "split": "Known|Easy|Medium|Hard",
            "n_classes": COUNT + DASH,
            "n_test_images": COUNT + DASH,
        },
    ),
    "vaze2022/table3": (
        40,
        {
            "method": r"ARPL\+|MLS",
            "dataset": SSB,
            "open_split": "Easy|Hard" + DASH,
            "metric": "accuracy|auroc|oscr",
            "value_pct": PERCENT,
        },
    ),
    "vaze2022/table4": (
        40,
        {
            "method": r"MSP|OSRCI|ARPL|ARPL \+ CS",
            "dataset": STANDARD,
            "metric": "(accuracy|auroc)_std",
            "value_pct": r"\d\.\d\d",
        },
    ),
    "vaze2022/table5": (
        9,
        {
            "row": "[1-9]",
            "epochs": "100|200|600",
            "scheduler": r"Step|Cosine \([02]\)",
            "augmentation": "RandCrop|CutOut|RandAug",
            "logit_eval": FLAG,
            "warmup": FLAG,
            "label_smoothing": FLAG,
            "ensemble": FLAG,
            "accuracy_pct": PERCENT,
            "auroc_pct": PERCENT,
            "oscr_pct": PERCENT,
        },
    ),
    "vaze2022/table6": (
        114,
        {
            "method": r"[A-Z(][A-Za-z0-9()+ -]+",
            "citation": CITATION + DASH,
            "backbone": "VGG32|DHRNet|WRN-28-10|WRN-40-4|CPGM-AAE",
            "dataset": STANDARD,
            "auroc_pct": PERCENT + DASH,
            "printed_delta": GAIN + DASH,
        },
    ),
    "vaze2022/table7": (
        15,
        {
            "in_distribution": "CIFAR100",
            "ood": "Gaussian Noise|SVHN|CIFAR10",
            "method": r"Outlier Exposure|OpenHybrid|ARPL\+CS|MLS( \(Lim et al\., 2019\))?",
            "auroc_pct": PERCENT + DASH,
        },
    ),
    "vaze2022/table8": (
        12,
        {
            "method": r"MSP|ODIN|Energy Score|Mahalanobis|VOS|MLS \(Ours\)",
            "citation": CITATION,
            "in_distribution": "CIFAR10|CIFAR100",
            "mean_auroc_pct": PERCENT + DASH,
        },
    ),
    "vaze2022/table9": (
        18,
        {
            "method": r"ARPL\+|MLS",
            "dataset": SSB,
            "open_split": "Easy|Medium|Hard",
            "ap_pct": PERCENT + DASH,
        },
    ),
    "vaze2022/text_claims": (
        11,
        {
            "name": "[a-z0-9_]+",
            "where": r"(Sec|App)\. [A-Z0-9.]+",
            "claim": "[A-Za-z].*",
            "value": r"[\d.]+|\d-\d",
            "unit": "points|pct|hours|days",
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


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_files_are_plain_text_without_stray_characters(file):
    text = file.read_bytes().decode("utf8")
    assert text.endswith("\n")
    assert not re.search(r"[\r\t\ufeff]|\n\n|  ", text)
    cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
    assert all(cell == cell.strip() for cell in cells)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
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
