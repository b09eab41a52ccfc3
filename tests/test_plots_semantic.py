"""Figures of Section 5: what is drawn is what the table says, and more classes spread less."""

import numpy as np
import pandas as pd
import pytest

from osnb import metrics, plots
from osnb.evidence import frames


def scores(method="MLS", classes=12, images=5):
    """A scores table: 40 known samples, and unknown classes each at a height of its own."""
    rng = np.random.default_rng([len(method), classes])
    role = np.repeat(["known", "unknown"], [40, classes * images])
    of = np.r_[np.arange(40) % 4, np.repeat(np.arange(classes), images)]
    height = np.where(role == "known", 1.5, rng.normal(0, 1, classes)[of % classes])
    label = np.where(role == "known", of, -2)
    return pd.DataFrame(
        {"run": method, "printed": method, "role": role, "label": label, "pred": of % 4}
        | {"class": [f"{r[0]}{c:02}" for r, c in zip(role, of, strict=True)]}
        | {
            "group": np.where(of % 2, "easy", "hard"),
            "max_logit": height + rng.normal(size=len(of)),
        }
    )


BOTH = pd.concat([scores("MLS"), scores("ARPL+")], ignore_index=True)
NUMBERED = {"score": "max_logit", "numbers": [1, 4, 12], "draws": 300, "seed": 0}
POINTS = frames.class_points(BOTH, score="max_logit").assign(
    data="a miniature", steps=np.arange(24) // 3 + 2
)
FIGURES = {
    "class_likeness": lambda: plots.class_likeness(POINTS),
    "class_numbers": lambda: plots.class_numbers(frames.number_points(BOTH, **NUMBERED)),
}


def test_an_auroc_of_each_class_averages_to_that_of_all_samples():
    table = scores()
    points = frames.class_points(table, score="max_logit")
    known, unknown = (table.loc[table["role"] == r, "max_logit"] for r in ("known", "unknown"))
    assert len(points) == 12
    assert points["auroc"].mean() == pytest.approx(metrics.auroc(known, unknown))


def test_every_class_is_a_point():
    lines = plots.class_likeness(POINTS).axes[0].lines
    drawn = [(round(x), y) for line in lines[:2] for x, y in zip(*line.get_data(), strict=True)]
    wanted = POINTS[["steps", "auroc"]].itertuples(index=False, name=None)
    assert sorted(drawn) == sorted(wanted)


def test_auroc_keeps_its_mean_and_spreads_by_the_root_law():
    points = frames.number_points(scores(), **NUMBERED | {"draws": 2000})
    rows = points[points["measure"] == "auroc"]
    single = frames.class_points(scores(), score="max_logit")["auroc"]
    errors = (rows["mean"] - single.mean()) / (rows["sd"] / np.sqrt(2000))
    assert errors.abs().max() < 4
    np.testing.assert_allclose(rows["sd"], rows["expected_sd"], rtol=0.1)
    assert rows["expected_sd"].tolist() == pytest.approx(
        (single.std(ddof=0) / np.sqrt(rows["classes"])).tolist()
    )


def test_average_precision_of_a_random_score_is_the_share_of_unknowns():
    points = frames.number_points(scores(), **NUMBERED)
    chance = points.query("measure == 'average_precision'").set_index("classes")["chance"]
    assert chance.to_dict() == pytest.approx({n: 5 * n / (40 + 5 * n) for n in (1, 4, 12)})


@pytest.mark.parametrize("method", ["MLS", "ARPL+"])
def test_numbers_are_drawn_as_the_table_has_them(method):
    points = frames.number_points(BOTH, **NUMBERED)
    axes = plots.class_numbers(points).axes
    rows = points[points["printed"] == method]
    auroc, precision = (part for _, part in rows.groupby("measure", sort=False))
    for ax, part, column in zip(
        axes, (auroc, auroc, precision), ("mean", "sd", "mean"), strict=True
    ):
        (line,) = (line for line in ax.lines if line.get_label() == method)
        np.testing.assert_array_equal(line.get_data(), part[["classes", column]].to_numpy().T)


def test_methods_share_the_draws_and_a_seed_repeats_them():
    twice = pd.concat([scores(), scores().assign(printed="again")], ignore_index=True)
    points = frames.number_points(twice, **NUMBERED)
    one, two = (points[points["printed"] == m].drop(columns="printed") for m in ("MLS", "again"))
    np.testing.assert_array_equal(one.drop(columns="measure"), two.drop(columns="measure"))
