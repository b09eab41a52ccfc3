"""`osnb threshold`: the numbers of `metrics` for a file, a verdict per row, and its refusals."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy import stats
from test_cli import osnb

from osnb import metrics
from osnb.book.cli.scores import BEYOND, PROMISES
from tests.benchmarks.thresholds import drawn


def frame(size, seed=0):
    """Samples of three classes, three in ten unknown, with a score."""
    score, right, unknown = drawn("normal", size, np.random.default_rng(seed))
    label = np.where(unknown, -2, np.arange(size) % 3)
    pred = np.where(right, label, (np.arange(size) + 1) % 3)
    ids = [f"s{i}" for i in range(size)]
    return pd.DataFrame({"sample": ids, "label": label, "pred": pred, "mine": score})


@pytest.fixture
def files(tmp_path, monkeypatch):
    """(held out, test), also written to the working folder as a.csv and b.csv."""
    monkeypatch.chdir(tmp_path)
    tables = frame(1000), frame(800, seed=1)
    for name, table in zip("ab", tables, strict=True):
        table.to_csv(f"{name}.csv", index=False)
    return tables


def told(*words):
    """The json of `osnb threshold WORDS`, and {promise: {measure: row}}."""
    code, out, err = osnb("threshold", *words, "--json", "-")
    assert (code, err) == (0, "")
    found, rows = json.loads(out), {}
    for row in found["rows"]:
        rows.setdefault(row["promise"], {})[row["measure"]] = row
    return found, rows


def of(table, threshold):
    """(count, of) of each rate, row by row."""
    known, accepted = table["label"] >= 0, table["mine"] >= threshold
    wrong = table["pred"] != table["label"]
    return {
        "tpr": ((known & accepted).sum(), known.sum()),
        "fpr": ((~known & accepted).sum(), (~known).sum()),
        "risk": ((wrong & accepted).sum(), accepted.sum()),
        "coverage": (accepted.sum(), len(table)),
    }


@pytest.mark.parametrize("words", [("--tpr", 0.9), ("--fpr", 0.1), ("--risk", 0.1)])
def test_the_threshold_is_the_held_out_samples_and_the_rates_are_the_others(files, words):
    held_out, others = files
    rate, at = words[0].strip("-"), words[1]
    _, rows = told("a.csv", "--test", "b.csv", *words)
    known = held_out["label"] >= 0
    scores = held_out["mine"].to_numpy()
    if rate == "risk":
        # known before unknown, as the package pools them
        order = np.r_[np.flatnonzero(known), np.flatnonzero(~known)]
        right = (held_out["pred"] == held_out["label"]).to_numpy()
        by_hand = metrics.risk_threshold(scores[order], right[order], risk=at, seed=0)
    elif rate == "tpr":
        by_hand = metrics.tpr_threshold(scores[known], tpr=at)
    else:
        by_hand = metrics.fpr_threshold(scores[~known], fpr=at)
    assert {row["threshold"] for row in rows["bound"].values()} == {by_hand}
    assert [*rows] == (["bound"] if rate == "risk" else ["bound", "conformal"])
    for promise in rows.values():
        for name, (count, number) in of(others, promise["tpr"]["threshold"]).items():
            ends = stats.binomtest(int(count), int(number)).proportion_ci(0.95, "exact")
            found = [promise[name][key] for key in ("value", "low", "high")]
            assert found == pytest.approx([count / number, ends.low, ends.high])


def test_one_file_is_halved_and_the_half_that_chooses_is_not_tested(files):
    found, rows = told("a.csv", "--tpr", 0.9, "--out", "v.csv")
    assert (found["calibration"], found["test"]) == (500, 500)
    tested = pd.read_csv("v.csv")
    halves = files[0]["sample"].isin(tested["sample"])
    chose = files[0][~halves & (files[0]["label"] >= 0)]["mine"].to_numpy()
    threshold = rows["bound"]["tpr"]["threshold"]
    assert threshold == metrics.tpr_threshold(chose, tpr=0.9)
    assert (halves.sum(), *of(files[0][halves], threshold)["tpr"]) == (
        500,
        (
            tested["verdict"].str.startswith("accept") & (files[0]["label"][halves] >= 0).values
        ).sum(),
        (files[0]["label"][halves] >= 0).sum(),
    )


def test_each_row_is_accepted_as_its_class_or_rejected(files):
    for name, table in zip("ab", files, strict=True):
        table.round(1).to_csv(f"{name}.csv", index=False)
    _, rows = told("a.csv", "--test", "b.csv", "--risk", 0.1, "--out", "v.csv")
    found, others = pd.read_csv("v.csv"), files[1].round(1)
    accepted = others["mine"] >= (threshold := rows["bound"]["risk"]["threshold"])
    assert (others["mine"] == threshold).any()
    wanted = np.where(accepted, "accept " + others["pred"].astype(str), "reject")
    assert found["verdict"].tolist() == wanted.tolist()
    assert found["sample"].tolist() == others["sample"].tolist()
    assert 0 < accepted.sum() < len(others)


def test_the_risk_follows_the_share_of_unknown_samples_to_come(files):
    risks = {
        share: told("a.csv", "--test", "b.csv", "--risk", 0.15, "--share", share)[1]["bound"]
        for share in (0.02, 0.5)
    }
    assert risks[0.02]["risk"]["threshold"] < risks[0.5]["risk"]["threshold"]
    # fewer unknown samples among those to come: the same threshold would err more rarely
    low, high = (of(files[1], risks[share]["risk"]["threshold"])["fpr"][0] for share in risks)
    assert low > high
    for share, rows in risks.items():  # and so do the rates that the test has
        wanted = (1 - share) * rows["tpr"]["value"] + share * rows["fpr"]["value"]
        assert rows["coverage"]["value"] == pytest.approx(wanted, abs=0.05)


def test_each_promise_is_told_with_its_numbers_and_what_none_can_say_is_said_once(files):
    code, out, err = osnb("threshold", "a.csv", "--tpr", 0.9)
    assert (code, re.findall(r"\d+", out.splitlines()[0])) == (0, ["500", "500", "95"])
    bound, conformal = (
        [line for line in err.splitlines() if f" {name}: " in line] for name in PROMISES
    )
    assert "95 %" in bound[0]
    for (line,) in (bound, conformal):
        assert re.search(r"\bTPR\b.* at least 0\.9\b", line)
    assert err.count(BEYOND) == 1


def test_a_risk_that_cannot_be_kept_rejects_everything_and_says_so(files):
    code, _, err = osnb("threshold", "a.csv", "--risk", 0.001, "--out", "v.csv")
    assert code == 0
    assert re.search(r"bound: none: .*\brisk at most 0\.001\b", err)
    assert set(pd.read_csv("v.csv")["verdict"]) == {"reject"}
    _, rows = told("a.csv", "--risk", 0.001)
    assert (rows["bound"]["risk"]["threshold"], rows["bound"]["risk"]["value"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "need one of --tpr, --fpr, --risk; got 0"),
        (("--tpr", 0.9, "--fpr", 0.1), "need one of --tpr, --fpr, --risk; got 2"),
        (("--tpr", 1.5), "--tpr needs a number in (0, 1); got 1.5"),
        (("--fpr", 0), "--fpr needs a number in (0, 1); got 0"),
        (("--fpr", 0.001), "need 2995 unknown samples or more"),
        (("--risk", 0.1, "--share", 2), "share needs a number in (0, 1); got 2"),
        (("--risk", 0.1, "--out", "v.txt"), "--out writes .csv"),
        (("--risk", 0.1, "--score", "yours"), "needs a column yours"),
        (("--risk", 0.1, "--out", "a.csv"), "a.csv is read"),
        (("--risk", 0.1, "--test", "a.csv"), "--test needs samples that did not choose"),
        (("--risk", 0.1, "--test", "d.csv"), "d.csv has no score mine: see --score"),
    ],
)
def test_what_cannot_be_decided_is_refused(files, words, reason):
    files[1].rename(columns={"mine": "other"}).to_csv("d.csv", index=False)
    assert reason in refused("threshold", "a.csv", *words)


def test_of_several_scores_one_has_to_be_chosen(files):
    files[0].assign(other=0.0).to_csv("c.csv", index=False)
    said = refused("threshold", "c.csv", "--tpr", 0.9)
    assert said == "osnb: c.csv: choose one with --score: mine, other\n"
    assert osnb("threshold", "c.csv", "--tpr", 0.9, "--score", "mine")[0] == 0
