"""`osnb score`: the numbers of the rooms below for a file, and one sentence for a bad one."""

import io
import json
import os
import re
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import refusals
from sklearn.metrics import roc_auc_score
from test_cli import osnb

from osnb import metrics, scores
from osnb.base.outputs import Outputs
from osnb.evidence import samples as draw

DRAWN = ("--resamples", 40, "--seed", 3)
SPARSE = [  # of `frame`
    note.format(many)
    for many in ("40 unknown", "20 negative")
    for note in (
        "no CCR at FPR 0.001, 0.01: that is less than one of {} images",
        "no interval of CCR at FPR 0.1: fewer than 10 of {} images decide it",
    )
]
FEW = (
    "few classes, 3 known, {} unknown, {} negative: of 2, 3, 4, 10 classes such an interval holds "
)
FEW += "the truth about .65, .80, .85, .90 of the time"


def samples(seed=0, shift=2.0):
    """(labels, logits) of 60 known samples of 3 classes, 20 negative and 40 unknown ones."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(60) % 3, np.full(20, -1), np.full(40, -2)]
    return labels, rng.normal(size=(120, 3)) + shift * (labels[:, None] == np.arange(3))


def frame(seed=0, shift=2.0, logits=False):
    """The samples as a table of one score, or of logits."""
    labels, z = samples(seed, shift)
    rows = pd.DataFrame({"sample": [f"s{i}" for i in range(120)], "label": labels})
    rows["class"] = [f"k{y}" if y >= 0 else f"u{i % 5}" for i, y in enumerate(labels)]
    if logits:
        return rows.assign(**{f"logit_{c}": z[:, c] for c in range(3)})
    return rows.assign(pred=z.argmax(axis=1), mine=z.max(axis=1))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Writes a table as a csv file of the working folder; gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(rows, name="a.csv"):
        rows.to_csv(name, index=False)
        return name

    return write


def told(*words):
    """The json of `osnb score WORDS`, and its rows by role, measure and score."""
    code, out, err = osnb("score", *words, *DRAWN, "--json", "-")
    assert (code, err) == (0, "")
    found = json.loads(out)
    return found, {(r["role"], r["measure"], r["score"]): r for r in found["rows"]}


def by_hand(labels, logits, score, role=-2, units=None):
    """(1 + R,) of each measure."""
    known, other = labels >= 0, labels == role
    right = logits[known].argmax(axis=1) == labels[known]
    units = np.arange(len(labels)) if units is None else units
    weights = metrics.role_weights(units[known], units[other], seed=3, resamples=40)
    sides = score[known], right, score[other]
    found = metrics.bootstrap_summary(*sides, weights=weights)
    return found | {"augrc": metrics.bootstrap_augrc(*sides, weights=weights)}


# What it says


@pytest.mark.parametrize("unit", ["sample", "class"])
def test_the_numbers_are_those_of_the_rooms_called_by_hand(file, unit):
    labels, logits = samples()
    units = frame()["class"].to_numpy() if unit == "class" else None
    _, rows = told(file(frame()), "--unit", unit)
    for role, label in (("unknown", -2), ("negative", -1)):
        hand = by_hand(labels, logits, logits.max(axis=1), label, units)
        assert {(role, name, "mine") for name in hand} == {key for key in rows if key[0] == role}
        for name, values in hand.items():
            row = rows[role, name, "mine"]
            value, low, high = metrics.interval(values)
            if name in ("ccr_at_fpr_0.001", "ccr_at_fpr_0.01"):  # less than one of 20, and of 40
                value = low = high = None
            elif name == "ccr_at_fpr_0.1":
                low = high = None
            elif unit == "sample" and name in ("accuracy", "ccr_at_fpr_1"):
                low, high = metrics.exact_interval(round(60 * value), 60)
            assert (row["value"], row["low"], row["high"]) == (value, low, high)


def test_auroc_is_scikit_learns_and_augrc_the_one_of_the_pooled_samples(file):
    labels, logits = samples()
    _, rows = told(file(frame()))
    used, score = labels != -1, logits.max(axis=1)
    right = logits.argmax(axis=1) == labels
    auroc = roc_auc_score(labels[used] >= 0, score[used])
    assert rows["unknown", "auroc", "mine"]["value"] == pytest.approx(auroc)
    augrc = metrics.augrc(score[used], right[used])
    assert rows["unknown", "augrc", "mine"]["value"] == pytest.approx(augrc)
    assert rows["unknown", "accuracy", "mine"]["value"] == right[:60].mean()


def test_logits_give_every_rule_whichever_the_form_of_the_file(file):
    labels, logits = samples()
    csv = file(frame(logits=True))
    frame(logits=True).to_parquet("a.parquet")
    np.savez("a.npz", labels=labels, logits=logits)
    found = [told(name)[1] for name in (csv, "a.parquet", "a.npz")]
    assert found[0] == found[1] == found[2]
    assert {key[2] for key in found[0]} == {*scores.RULES}
    for name, rule in scores.RULES.items():
        hand = by_hand(labels, logits, rule(Outputs(logits), known=3))
        assert found[0]["unknown", "oscr_area", name]["value"] == hand["oscr_area"][0]


@pytest.mark.parametrize("sample", [True, False])
def test_two_files_are_compared_on_the_same_draws(file, sample):
    first, second = frame(), frame(1, 1.0)
    labels, logits = samples()
    other = samples(1, 1.0)[1]
    if sample:  # in any order
        second = second.sample(frac=1, random_state=0)
    else:
        first, second = (each.drop(columns="sample") for each in (first, second))
    found, rows = told(file(first), "--against", file(second, "b.csv"))
    a, b = (by_hand(labels, z, z.max(axis=1))["oscr_area"] for z in (logits, other))
    row = rows["unknown", "oscr_area", "mine"]
    assert found["files"] == ["a.csv", "b.csv"]
    assert (row["first"], row["second"], row["p"]) == (a[0], b[0], metrics.p_value(a - b))
    assert (row["difference"], row["low"], row["high"]) == metrics.interval(a - b)


def test_the_only_score_of_a_file_is_compared_with_each_of_the_other(file):
    second = frame(1).rename(columns={"mine": "theirs"}).assign(noise=np.arange(120) % 7)
    _, rows = told(file(frame()), "--against", file(second, "b.csv"))
    assert {key[2] for key in rows} == {"mine - theirs", "mine - noise"}
    labels, own = samples()
    known = labels >= 0
    row = rows["unknown", "auroc", "mine - noise"]
    assert row["first"] == by_hand(labels, own, own.max(axis=1))["auroc"][0]
    used, score = labels != -1, np.arange(120) % 7
    assert row["second"] == pytest.approx(roc_auc_score(known[used], score[used]))
    said = refused("b.csv", "--against", "a.csv")
    assert "one in the first; got theirs, noise and mine" in said


def test_a_column_that_knows_the_label_is_no_score(file):
    rows = frame().assign(target=0.5, target_log_odds=0.0)
    assert {key[2] for key in told(file(rows))[1]} == {"mine"}


def test_known_samples_alone_say_what_cannot_be_computed(file):
    name = file(frame().query("label >= 0").drop(columns="class"))
    code, out, err = osnb("score", name, "--unit", "class", *DRAWN)
    assert code == 0
    assert "aurc" in out
    assert "auroc" not in out
    assert err.startswith("osnb: few classes, 3 known: of 2, ")
    assert "\nosnb: no unknown (-2) or negative (-1) sample: OSCR, CCR, AUROC" in err
    assert err.count("\n") == 2
    assert "AUROC" in json.loads(osnb("score", name, "--json", "-")[1])["notes"][0]


def test_the_table_and_the_csv_file_hold_the_same_rows(file):
    code, out, err = osnb("score", file(frame()), *DRAWN, "--out", "out.csv")
    assert (code, err.splitlines()) == (0, [f"osnb: {note}" for note in SPARSE])
    exact = dict.fromkeys(("value", "low", "high"), lambda text: float(text or "nan"))
    table = pd.read_csv("out.csv", converters=exact)  # pandas' own reader may lose a last digit
    assert list(table) == ["role", "measure", "score", "value", "low", "high"]
    rows = pd.DataFrame(told("a.csv")[0]["rows"])[list(table)].astype(table.dtypes)
    pd.testing.assert_frame_equal(table, rows, check_exact=True)
    assert "95 % intervals over samples" in out
    assert out.count("mine") == len(table)
    assert f"{table['low'][0]:.4f}" in out


def test_help_shows_an_example():
    assert re.search(r"osnb score \S+\.csv\n", osnb("score", "--help")[1])


# Refusals


def changed(**columns):
    return frame().assign(**columns)


BAD = {
    "no label": (frame().drop(columns="label"), "needs a column label; there are: sample"),
    "no label, classes by name": (
        changed(pred="cat").drop(columns="label"),
        "needs a column label; there are: sample",
    ),
    "semicolons": (
        pd.DataFrame({"label;pred;mine": ["0;0;1"]}),
        "needs a column label, and commas between columns; there are: label;pred;mine",
    ),
    "no pred": (frame().drop(columns="pred"), "needs a column pred; there are: sample"),
    "no score": (frame().drop(columns="mine"), "needs a column of scores, or logits"),
    "nan": (changed(mine=[np.nan, *range(119)]), "mine needs a number in each row; 1 of 120"),
    "nan label": (changed(label=[np.nan, *[0] * 119]), "label needs a number in each row"),
    "half": (changed(label=0.5), "label needs whole numbers; got 0.5"),
    "low": (changed(label=-3), "labels are >= 0, -1 or -2; got -3"),
    "no known": (changed(label=-2), "needs known samples, label >= 0; none of 120 is one"),
    "rows": (frame()[:0], "needs (N,) labels, N >= 1; got shape (0,)"),
    "logit": (frame(logits=True).drop(columns="logit_1"), "there is no logit_1"),
    "twice": (pd.concat([frame(), frame()["mine"]], axis=1), "has more than one column 'mine'"),
    "large": (frame(logits=True).assign(label=3), "needs labels below 3 known classes; got 3"),
    "huge label": (changed(label=1e300), "label needs whole numbers; got 1e+300"),
    "endless label": (changed(label=np.inf), "label needs whole numbers; got inf"),
    "infinite": (frame(logits=True).assign(logit_0=np.inf), "need finite logits; got inf in row 0"),
}


refused = partial(refusals.refused, "score", "--resamples", 30, "--out", "out/out.csv")


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_a_sentence_that_names_it(file, tmp_path, case):
    rows, reason = BAD[case]
    said = refused(file(rows))
    assert said.startswith("osnb: a.csv: ")
    assert reason in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz"])
def test_a_file_that_is_no_such_file_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert name in refused(name)
    (tmp_path / name).touch()
    assert f"{name}: " in refused(name)
    (tmp_path / name).write_bytes(b"\x00\xffPK")
    assert f"{name}: " in refused(name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"logits": np.ones((3, 2))}, "needs a label for each row; got 3 logits, 2"),
        ({"logits": np.ones(2)}, "logits needs shape (N, C); got (2,)"),
        ({"logits": np.ones((2, 2)) + 1j}, "logits needs numbers"),
        ({"pred": np.ones(2), "mine": np.ones((2, 2))}, "mine needs shape (2,), as label"),
        ({"pred": np.ones(3), "mine": np.ones(2)}, "pred needs shape (2,), as label; got (3,)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, arrays, reason):
    np.savez("a.npz", labels=np.array([0, -2]), **arrays)
    assert reason in refused("a.npz")


@pytest.mark.parametrize(
    ("head", "byte", "value"),
    [(b"PK\3\4", 60, 7), (b"PK\1\2", 8, 1), (b"PK\1\2", 10, 99)],
    ids=["no deflate", "encrypted", "packed in an unknown way"],
)
def test_a_damaged_npz_file_is_refused(file, head, byte, value):
    np.savez_compressed("a.npz", labels=np.arange(99), pred=np.arange(99))
    content = bytearray(Path("a.npz").read_bytes())
    content[content.index(head) + byte] = value
    Path("a.npz").write_bytes(content)
    assert "a.npz: is no npz file of plain arrays" in refused("a.npz")


def test_an_npz_file_that_declares_more_than_there_is_memory_is_refused(file):
    sink = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(sink, head)
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("labels.npy", sink.getvalue())
    assert "a.npz: is no npz file of plain arrays (Unable to allocate" in refused("a.npz")


def test_an_npz_file_that_grows_a_thousandfold_is_refused_before_it_is_unpacked(file, monkeypatch):
    def load(*_, **__):
        raise AssertionError("it was unpacked")

    np.savez_compressed("a.npz", labels=np.zeros(1 << 23, np.int64) - 2, pred=np.zeros(9))
    monkeypatch.setattr(np, "load", load)
    said = refused("a.npz")
    assert "a.npz: is no npz file of plain arrays (labels.npy would grow more than 200-fold" in said


@pytest.mark.parametrize(
    "text", ["9223372036854775809", "-9223372036854775809", "+1" + "0" * 30, "9" * 5000]
)
def test_whole_numbers_of_a_csv_file_that_no_double_holds_are_refused(file, text):
    """Arrow reads as doubles what no int64 holds, and all of a column with a decimal point."""
    path = file(frame().assign(mine=[text, *map(str, range(119))]))
    assert f"a.csv: mine needs numbers that float64 holds exactly; got {text}" in refused(path)
    path = file(frame().assign(mine=["9007199254740993", *[f"{x}.5" for x in range(119)]]))
    assert "mine needs numbers that float64 holds exactly; got 9007199254740993" in refused(path)


def test_large_numbers_of_a_csv_file_that_doubles_hold_are_taken(file):
    kept = ["9223372036854775808", "1e300", "1e19", "inf", "-18446744073709551616"]
    plain = [float(2**63), 1e300, 1e19, np.inf, -(2.0**64)]
    rows = [[*column, *range(115)] for column in (kept, plain)]
    rows += [[hex(x) for x in range(120)], range(120)]  # Arrow reads hexadecimal whole numbers too
    found = [told(file(frame().assign(mine=row)))[1] for row in rows]
    assert found[0] == found[1] != found[2] == found[3]


def test_a_column_that_is_empty_is_no_score_and_that_is_said(file):
    rows = frame()
    rows.assign(blank=None).to_parquet("a.parquet")
    for path in ("a.parquet", file(rows.assign(blank=None))):
        code, _, err = osnb("score", path, "--resamples", 20)
        assert (code, err.split("\n")[0]) == (0, "osnb: no score, being text or empty: blank")
        assert "blank needs numbers" in refused(path, "--score", "blank")


def test_text_in_another_code_than_utf8_is_refused(file):
    rows = changed(label=["café"] * 60 + ["unknown"] * 60, pred="café")
    rows.to_csv("a.csv", index=False, encoding="latin-1")
    assert "column label is no text in UTF-8" in refused("a.csv")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(file, name):
    os.mkfifo(name)
    assert f"no such file: {name}" in refused(name)


def test_an_error_of_arrow_s_own_kind_is_a_sentence(file, monkeypatch):
    """A flipped byte of a column's name gave one."""

    def read_table(_):
        raise pa.ArrowException("Unknown error: Wrapping s failed")

    monkeypatch.setattr("pyarrow.parquet.read_table", read_table)
    assert "a.parquet: Unknown error" in refused(file(frame(), "a.parquet"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--unit", "run"), "--unit is one of sample, class; got 'run'"),
        (("--score", "yours"), "needs a column yours; there are: sample, label"),
        (("--known", 2), "known=2 counts logits or texts, and there are none"),
        (("--resamples", 0), "need samples and resamples"),
        (("--against", "a.csv", "--choose"), "one of --against, --conventions, --choose"),
        (("--conventions", "--choose"), "one of --against, --conventions, --choose"),
        (("--out", "a.csv"), "a.csv is read"),
        (("--json", "a.csv"), "a.csv is read"),
    ],
)
def test_a_bad_option_is_refused(file, words, reason):
    assert reason in refused(file(frame()), *words)


def test_classes_are_drawn_only_where_a_column_names_them(file):
    assert "needs a column class" in refused(file(frame().drop(columns="class")), "--unit", "class")
    changed(**{"class": None}).to_parquet("a.parquet")
    assert "needs a column class" in refused("a.parquet", "--unit", "class")
    rows = changed(**{"class": [None, "a", "b"] * 40})
    rows.to_parquet("a.parquet")
    assert told("a.parquet", "--unit", "class")[1] == told(file(rows), "--unit", "class")[1]


def test_a_file_of_an_unknown_suffix_is_refused_and_so_is_such_an_output(file):
    assert "ends in .csv, .npz or .parquet; got '.txt'" in refused(file(frame(), "a.txt"))
    assert "--out writes .csv; got 'a.json'" in refused(file(frame()), "--out", "a.json")


OTHER = {
    "fewer": (frame()[:-1], "need the same samples in both; got 120 and 119"),
    "others": (changed(sample="x"), "need the same values of sample in both files, each once"),
    "no sample": (frame().drop(columns="sample"), "need a column sample in both files, or in none"),
    "labels": (changed(label=0), "need the same labels in both; 100 of 120 differ"),
}


@pytest.mark.parametrize("case", OTHER)
def test_two_files_that_do_not_belong_together_are_refused(file, case):
    rows, reason = OTHER[case]
    assert reason in refused(file(frame()), "--against", file(rows, "b.csv"))


def renamed(classes):
    """The table with each class under another name."""
    return changed(**{"class": frame()["class"].map(classes)})


def test_classes_of_two_files_are_the_same_under_any_names(file):
    words = file(frame()), "--unit", "class", "--against"
    plain = told(*words, file(frame(1), "b.csv"))[1]
    names = {name: f"n{i}" for i, name in enumerate(frame()["class"].unique())}
    other = frame(1).assign(**{"class": renamed(names)["class"]}).sample(frac=1, random_state=0)
    assert told(*words, file(other, "b.csv"))[1] == plain


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("rows", "pairs"),
    [
        (renamed(lambda x: x if x[0] == "k" else "unknown"), {"unknown and u0", "unknown and u1"}),
        (renamed(lambda x: x if x[0] == "k" else ""), {" and u0", " and u1"}),
        (changed(**{"class": frame()["sample"]}), {"s0 and k0", "s3 and k0"}),
    ],
)
def test_other_classes_in_the_second_file_are_refused_by_two_samples(file, rows, pairs, first):
    two = (rows, frame()) if first else (frame(), rows)
    names = [file(*each) for each in zip(two, ("a.csv", "b.csv"), strict=True)]
    said = refused(names[0], "--against", names[1], "--unit", "class")
    assert "need the same classes in both, under any names; sample s" in said
    for pair in pairs:
        one, other = map(repr, pair.split(" and ") if first else pair.split(" and ")[::-1])
        assert f"is {one} in the first and {other} in the second" in said


def test_draws_of_classes_need_more_than_one_and_say_what_is_empty(file):
    file(renamed(lambda x: x if x != "u1" else ""))
    found = told("a.csv", "--unit", "class")[0]
    empty = "class is empty in 12 of 120 rows: these are drawn as one class"
    assert found["notes"] == [*SPARSE, empty, FEW.format(5, 5)]
    assert told("a.csv")[0]["notes"] == SPARSE
    for name in ("", "unknown"):
        rows = frame()
        rows.loc[rows["label"] == -2, "class"] = name
        said = refused(file(rows), "--unit", "class")
        assert f"need two unknown classes or more; all are {name!r} (--unit" in said
    rows = frame()
    rows.loc[rows["label"] == -1, "class"] = "n"
    said = "all negative samples are of class 'n': their intervals leave its choice out"
    assert told(file(rows), "--unit", "class")[0]["notes"] == [*SPARSE, FEW.format(5, 1), said]
    rows = changed(**{"class": [f"u{x}" if x < 0 else "k" for x in frame()["label"]]})
    assert "need two known classes or more; all are 'k'" in refused(file(rows), "--unit", "class")


def two_sources():
    """One source of 2 large classes that look known, another of 40 small ones that do not."""
    label = np.r_[np.arange(200) % 20, np.full(400, -2)]
    units = [*label[:200], *np.arange(200) % 2 + 20, *np.arange(200) % 40 + 30]
    score = np.random.default_rng(0).normal(size=600) + np.r_[np.full(400, 3), np.zeros(200)]
    rows = pd.DataFrame({"label": label, "pred": label.clip(0), "class": units, "mine": score})
    return rows.assign(source=np.repeat(["known", "large", "small"], 200))


@pytest.mark.parametrize(("unit", "least"), [("class", 4), ("sample", 1.1)])
def test_a_resample_leaves_each_source_as_large_as_it_is(file, unit, least):
    rows = two_sources()
    row = told(file(rows), "--unit", unit)[1]["unknown", "auroc", "mine"]
    pooled = told(file(rows.drop(columns="source")), "--unit", unit)[1]["unknown", "auroc", "mine"]
    assert row["value"] == pooled["value"]
    assert pooled["high"] - pooled["low"] > least * (row["high"] - row["low"])


def test_known_images_are_drawn_by_source_too_and_a_half_of_them_keeps_it():
    rows = two_sources().assign(source=np.repeat(["a", "b", "c"], [80, 120, 400]))
    own = scores.own({name: column.to_numpy() for name, column in rows.items()}, names=["mine"])
    known = draw._weights(own, own.label < 0, "sample", {"seed": 0, "resamples": 20})[0]
    assert (known[:, own.source[:200] == "a"].sum(axis=1) == 80).all()
    assert draw.taken(own, np.array([0, 599])).source.tolist() == ["a", "c"]


def test_either_file_says_which_source_an_image_is_of(file):
    rows = two_sources()
    other = rows.assign(mine=rows["mine"].round())
    words = "--against", "b.csv", "--unit", "class"
    found = []
    for names in (("source", "x"), ("x", "source"), ("source", "source"), ("x", "x")):
        for table, name, path in zip((rows, other), names, ("a.csv", "b.csv"), strict=True):
            file(table if name == "source" else table.drop(columns="source"), path)
        found.append(told("a.csv", *words)[1])
    assert found[0] == found[1] == found[2] != found[3]


def test_a_source_of_one_class_leaves_its_choice_out_and_that_is_said(file):
    rows = two_sources()
    rows.loc[rows["source"] == "large", "class"] = 20
    said = "sources of one class, large: their intervals leave its choice out"
    assert said in told(file(rows), "--unit", "class")[0]["notes"]
    far = rows["source"].mask(rows["label"] < 0, rows["class"].astype(str) + " set")
    notes = told(file(rows.assign(source=far)), "--unit", "class")[0]["notes"]
    assert not [note for note in notes if "sources of one class" in note]  # drawn as one
    alone = rows.assign(source=rows["class"])  # of one class each: the source says no more
    plain = rows.drop(columns="source")
    found = [told(file(table), "--unit", "class")[1] for table in (alone, plain)]
    assert found[0] == found[1]


def test_an_interval_that_holds_nothing_is_said(file):
    rows = frame()
    one = rows[(rows["label"] >= 0) | (rows.index == 119)].assign(mine=rows["label"])
    notes = told(file(one))[0]["notes"]
    assert "one unknown image: the intervals leave its choice out" in notes
    (flat,) = (note for note in notes if note.startswith("low equals high, so the draws tell"))
    assert {"auroc of mine", "fpr95 of mine"} <= {*flat.split(": ")[1].split(", ")}
    assert "accuracy" not in flat
    file(rows, "b.csv")
    rows["other"] = -rows["mine"]
    notes = told(file(rows), "--against", "b.csv")[0]["notes"]
    assert not [note for note in notes if "draws tell" in note]  # one network: no difference at all
    perfect = told(file(rows.assign(pred=rows["label"].clip(0))))[1]["unknown", "accuracy", "mine"]
    assert (perfect["low"], perfect["high"]) == metrics.exact_interval(60, 60)


def test_scores_that_only_one_file_has_are_said_or_chosen(file):
    first, second = frame().assign(max_logit=1.0), frame(1).rename(columns={"mine": "max_logit"})
    words = file(first.assign(epoch=3, seed=0)), "--against", file(second, "b.csv")
    found, rows = told(*words)
    assert {key[2] for key in rows} == {"max_logit"}
    said = "not compared, no column of that name in the second file: "
    assert found["notes"] == [f"{said}mine, epoch, seed", *SPARSE]
    found, rows = told(*words, "--score", "mine")
    assert {key[2] for key in rows} == {"mine - max_logit"}
    assert found["notes"] == SPARSE
    plain = told(file(frame()), *words[1:])[1]
    assert plain == rows
    file(second.assign(noise=0.5), "b.csv")
    file(first.assign(epoch=3))
    assert "b.csv has no score mine: add one of its own by --score: max_logit, noise" in refused(
        *words, "--score", "mine"
    )
    rows = told(*words, "--score", "mine", "--score", "noise")[1]
    assert {key[2] for key in rows} == {"mine - noise"}
    found, rows = told(*words, "--score", "max_logit", "--score", "noise", "--score", "mine")
    assert {key[2] for key in rows} == {"max_logit"}
    assert found["notes"] == [
        f"{said}mine",
        "not compared, no column of that name in the first file: noise",
        *SPARSE,
    ]
    assert "a.csv: needs a column yours" in refused(*words, "--score", "mine", "--score", "yours")
    assert "a.csv: needs a column noise" in refused(*words, "--score", "noise")


def test_scores_by_name_of_the_second_file_are_read_alone_or_from_its_logits(file):
    whole = frame(1).assign(broken=[np.nan, *range(119)])
    words = file(frame().assign(max_logit=1.0)), "--against"
    assert told(*words, file(whole, "b.csv"), "--score", "mine")[1]
    logits = file(frame(1, logits=True), "c.csv")
    rows = told(*words, logits, "--score", "mine", "--score", "max_logit")[1]
    assert {key[2] for key in rows} == {"max_logit"}


NAMES = {0: "zebra", 1: "cat", 2: "dog", -1: "negative", -2: "unknown"}


def named(rows):
    """The table with names of classes as label and pred, not in the order of the numbers."""
    return rows.assign(**{name: rows[name].map(NAMES) for name in ("label", "pred")})


@pytest.mark.parametrize("kinds", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("unit", ["sample", "class"])
def test_names_as_labels_are_those_numbers_that_stand_beside_them(file, kinds, unit):
    both = frame(), frame(1, 1.0)
    words = "--unit", unit, "--against", "b.csv"
    for rows, name in zip(both, ("a.csv", "b.csv"), strict=True):
        file(rows, name)
    plain = told("a.csv", *words)[1]
    for rows, name, names in zip(both, ("a.csv", "b.csv"), kinds, strict=True):
        file(named(rows) if names else rows, name)
    assert told("a.csv", *words)[1] == plain


def test_names_that_only_one_file_predicts_move_no_label(file):
    other = named(frame(1))
    other.loc[5, "pred"] = "aardvark"
    assert told(file(named(frame())), "--against", file(other, "b.csv"))[1]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (changed(label=[1, *frame()["label"][1:]]), "'zebra' in the first and '1' in the second"),
        (changed(label=[-2, *frame()["label"][1:]]), "the same labels in both; 1 of 120 differ"),
        (
            named(changed(label=[1, *frame()["label"][1:]])),
            "the same labels in both; 1 of 120 differ",
        ),
    ],
)
def test_names_and_numbers_that_disagree_are_refused(file, rows, reason):
    assert reason in refused(file(named(frame())), "--against", file(rows, "b.csv"))


def test_logits_of_other_classes_are_not_compared(file):
    more = frame(logits=True).assign(logit_3=0.0)
    words = file(frame(logits=True)), "--against", file(more, "b.csv")
    assert "need as many known classes in both; got 3 and 4" in refused(*words)
