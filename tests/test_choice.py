"""The best of many: picked on half of the unknown classes, reported on the rest."""

import json

import numpy as np
import pandas as pd
import pytest
from test_cli import osnb

from osnb import scores
from osnb.evidence.samples import choice, holm, measured

P = np.random.default_rng(0).random(12) ** 3


def own(good=1.5, noise=20, classes=10):
    """One good score and many of noise, of 300 known samples and 30 of each unknown class."""
    rng = np.random.default_rng(1)
    label = np.r_[np.arange(300) % 3, np.full(30 * classes, -2)]
    unit = np.array([f"k{y}" if y >= 0 else f"u{i % classes}" for i, y in enumerate(label)])
    columns = {f"noise{i}": rng.normal(size=len(label)) for i in range(noise)}
    columns["good"] = rng.normal(size=len(label)) + good * (label >= 0)
    return scores.own({"label": label, "pred": np.maximum(label, 0), "class": unit} | columns)


def test_holms_correction_is_its_definition_read_slowly():
    wanted = []
    for p in P:
        before = [q for q in sorted(P) if q <= p]
        wanted.append(min(1, max((len(P) - i) * q for i, q in enumerate(before))))
    np.testing.assert_allclose(holm(P), wanted)
    assert (holm(P) >= P).all()


def test_the_best_differs_from_noise_after_the_correction():
    rows = choice(own(), seed=0, resamples=1000)
    assert [row["score"] for row in rows if row["best"]] == ["good"]
    assert all(row["differs"] for row in rows if not row["best"])
    assert rows[0]["value"] == pytest.approx(0.855, abs=0.05)  # Phi(1.5 / sqrt 2)


def test_the_best_of_noise_is_reported_without_the_luck_that_picked_it():
    gains = []
    for seed in range(12):
        (best,) = (row for row in choice(own(good=0), seed=seed, resamples=30) if row["best"])
        gains.append(best["picked on"] - best["value"])
    assert np.mean(gains) > 0.02
    rows = choice(own(good=0), seed=0, resamples=1000)
    assert not any(row["differs"] for row in rows)


def test_no_class_of_the_pick_is_in_the_report():
    of = own()
    for name, column in of.scores.items():  # each unknown class gets a score of its own
        column[:] = np.where(
            of.label >= 0, 0, [float(unit[1:]) if unit[0] == "u" else 0 for unit in of.unit]
        )
        column += 0 if name == "good" else 1e-3
    (row, *_) = choice(of, seed=0, resamples=30)
    # AUROC: of each half, the mean over its classes of 1/2 for class 0 and 0 for the others
    assert {row["picked on"], row["value"]} == {0.0, 0.1}


def test_the_command_says_how_many_draws_it_takes(tmp_path):
    of, file = own(noise=3), tmp_path / "a.csv"
    columns = {"label": of.label, "pred": of.pred, "class": of.unit}
    pd.DataFrame(columns | of.scores).to_csv(file, index=False)
    code, out, err = osnb("score", file, "--choose", "--resamples", 119)
    assert (code, err) == (0, "osnb: 4 scores need --resamples 120 for any to differ\n")
    assert out.startswith("AUROC; differs: from the best, after Holm's correction\n")
    found = json.loads(osnb("score", file, "--choose", "--resamples", 120, "--json", "-")[1])
    assert (found["rows"], found["notes"]) == (choice(of, seed=0, resamples=120), [])


def test_one_score_or_no_class_leaves_nothing_to_choose():
    with pytest.raises(ValueError, match="got 1 scores, 10 unknown classes"):
        choice(own(noise=0), seed=0, resamples=30)
    with pytest.raises(ValueError, match="got 21 scores, 0 unknown classes"):
        choice(own()._replace(unit=()), seed=0, resamples=30)


def test_classes_are_not_drawn_where_all_known_images_are_of_one():
    of = own(noise=2)
    units = np.where(of.label >= 0, "k", of.unit)
    with pytest.raises(ValueError, match="two known classes or more; all are 'k'"):
        measured(of._replace(unit=units), np.where(of.label < 0, "far", ""), seed=0, resamples=30)


def test_every_group_is_measured_apart_with_the_other_half_below():
    of = own(noise=2, classes=4)
    known, near = of.label >= 0, np.isin(of.unit, ["u0", "u1"])
    groups = np.select([known, near], ["", "near"], "far")
    table = measured(of, groups, seed=0, resamples=60)
    assert list(dict.fromkeys(table["against"])) == ["near", "far", "other half"]
    for group, rows in {"near": near, "far": ~known & ~near}.items():
        for name, score in of.scores.items():
            (line,) = table[(table["rule"] == name) & (table["against"] == group)].itertuples()
            pairs = np.sign(score[known][:, None] - score[rows])  # AUROC as a share of pairs
            assert line.value == pytest.approx((pairs.mean() + 1) / 2)
            assert line.low <= line.value <= line.high
    half = table[table["against"] == "other half"].set_index("rule")
    for row in choice(of, seed=0, resamples=60):
        assert half.loc[row["score"], "picked on"] == row["picked on"]
        assert half.loc[row["score"], "differs"] == row["differs"]
