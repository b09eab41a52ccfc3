"""Measures against numbers made by hand, and findings that must turn when their numbers do."""

import numpy as np
import pandas as pd
import pytest

from osnb import claims, tables


def table(protocol, loss, *, known, negative, unknown, seed=0, **extra):
    """A scores table whose samples have these scores; known label 0, right if >= .5, K = 2."""
    parts = [("known", 0, known), ("negative", -1, negative), ("unknown", -2, unknown)]
    rows = [
        {"role": role, "label": i % 2 if label == 0 else label, "score": s}
        for role, label, values in parts
        for i, s in enumerate(values)
    ]
    frame = pd.DataFrame(rows)
    right = frame["score"] >= 0.5
    frame["pred"] = np.where(right, frame["label"].clip(lower=0), 1 - frame["label"].clip(lower=0))
    named = {"protocol": protocol, "loss": loss, "seed": seed, "run": f"{protocol}_{loss}_{seed}"}
    return frame.assign(target=frame["score"], max_softmax=frame["score"], **named, **extra)


def test_measures_are_those_of_the_definitions():
    run = table("p1", "softmax", known=[0.9, 0.8, 0.4], negative=[0.3, 0.5], unknown=[0.85, 0.1])
    row = claims.measures(run, rule="max_softmax").iloc[0]
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert row["gamma_plus"] == pytest.approx(0.7)
    assert row["gamma_minus_negative"] == pytest.approx(1 - 0.4 + 1 / 2)
    assert row["gamma_minus_unknown"] == pytest.approx(1 - 0.475 + 1 / 2)
    assert row["auroc_negative"] == pytest.approx(5 / 6)
    assert row["auroc_unknown"] == pytest.approx(4 / 6)
    assert row["ccr_at_0.1"] == pytest.approx(1 / 3)  # .9 before the first unknown at .85
    assert row["ccr_at_1"] == pytest.approx(2 / 3)


def test_background_has_no_offset():
    scores = {"known": [0.9, 0.8], "negative": [0.3], "unknown": [0.2]}
    row = claims.measures(table("p1", "background", **scores), rule="max_softmax").iloc[0]
    assert row["gamma_minus_negative"] == pytest.approx(0.7)


def test_released_ccr_keeps_the_background_column_of_the_runs_that_have_one():
    scores = {"known": [0.9, 0.8, 0.7], "negative": [0.1], "unknown": [0.95, 0.85]}
    plain = table("p1", "softmax", **scores)
    kept = table("p1", "background", **scores)
    # the first known sample is taken for background, which only this run can say
    kept["target_with_background"] = kept["score"]
    kept["max_softmax_with_background"] = kept["score"].replace({0.9: 0.92})
    rows = claims.measures(pd.concat([plain, kept]), rule="max_softmax").set_index("loss")
    assert rows["ccr_at_1"].tolist() == [1.0, 1.0]
    # thresholds are .7 and .8, the largest known target being left out; both have FPR 1
    assert rows.loc["softmax", "ccr_at_1_released"] == pytest.approx(2 / 3)
    assert rows.loc["background", "ccr_at_1_released"] == pytest.approx(1 / 3)
    assert rows["ccr_at_0.1_released"].isna().all()  # no point near: a dash


def world():
    """Measures of three losses on P1 and P3 in which every finding holds."""
    rows = [
        {"protocol": protocol, "loss": loss, "seed": 0, "accuracy": 0.7} | values
        for protocol, shift in (("p1", 0.1), ("p3", 0.0))
        for loss, values in {
            "softmax": {"gamma_minus_negative": 0.3, "gamma_minus_unknown": 0.3}
            | {"auroc_negative": 0.6, "auroc_unknown": 0.6 + shift},
            "background": {"gamma_minus_negative": 0.4, "gamma_minus_unknown": 0.4}
            | {"auroc_negative": 0.8, "auroc_unknown": 0.65 + shift},
            "entropic": {"gamma_minus_negative": 0.8, "gamma_minus_unknown": 0.6}
            | {"auroc_negative": 0.9, "auroc_unknown": 0.7 + shift},
        }.items()
    ]
    return pd.DataFrame(rows)


def holds(frame):
    found = claims.palechor(frame)
    return {(row.finding, row.protocol): row.holds for row in found.itertuples()}


def test_every_finding_holds_in_a_world_made_for_it():
    assert set(holds(world()).values()) == {"yes"}


@pytest.mark.parametrize(
    ("change", "value", "lost"),
    [
        (("p1", "entropic", "gamma_minus_negative"), 0.2, "EOS raises gamma- over S on negatives"),
        (("p3", "entropic", "gamma_minus_unknown"), 0.3, "EOS raises gamma- over S on unknowns"),
        (("p3", "background", "auroc_unknown"), 0.9, "BG gains more"),
        (("p1", "entropic", "auroc_negative"), 0.6, "EOS gains more"),
        (("p1", "entropic", "auroc_unknown"), 0.7, "P1's unknowns"),
        (("p3", "background", "accuracy"), 0.6, "closed-set accuracies"),
    ],
)
def test_each_finding_is_lost_when_its_number_turns(change, value, lost):
    found = holds(turned(world(), change, value))
    no = {finding for (finding, _), answer in found.items() if answer == "no"}
    assert len(no) == 1
    assert no.pop().startswith(lost)


def turned(frame, change, value):
    protocol, loss, column = change
    frame.loc[(frame["protocol"] == protocol) & (frame["loss"] == loss), column] = value
    return frame


def test_a_finding_without_its_runs_is_undecided():
    frame = world()
    found = holds(frame[(frame["protocol"] == "p1") & (frame["loss"] != "background")])
    assert found["BG gains more on negatives than on unknowns", "p1"] == "undecided"
    assert found["P1's unknowns are easier to reject than P3's", "p1, p3"] == "undecided"
    assert found["EOS gains more on negatives than on unknowns", "p1"] == "yes"


def test_table_2_has_a_row_for_each_number_of_the_paper():
    runs = [
        table(protocol, loss, known=[0.9, 0.8], negative=[0.3], unknown=[0.2], seed=seed)
        for protocol in ("p1", "p2", "p3")
        for loss in ("softmax", "background", "entropic")
        for seed in (0, 1)
    ]
    found = claims.measures(pd.concat(runs), rule="max_softmax")
    ours = claims.table_2(found, found.set_index("run").assign(epoch=7.0)["epoch"])
    printed = claims.printed_table_2("last")
    both = tables.compare(
        printed, ours, on=["protocol", "loss", "number"], value="value", comparable=True
    )
    assert len(both) == 9 * 7
    assert both["ours"].notna().all()
    row = both.set_index(["protocol", "loss", "number"]).loc["p1", "softmax", "gamma_minus"]
    assert row["paper"] == 0.47
    assert row["ours"] == pytest.approx(1 - 0.3 + 1 / 2)
    assert row["run"] == "p1_softmax_0, p1_softmax_1"
    assert (both[both["number"] == "epoch"]["ours"] == 7).all()


def test_accuracies_count_as_close_if_they_are_as_close_as_the_papers():
    printed = claims.printed_table_2("last")
    accuracy = printed[printed["number"] == "ccr_at_1"].groupby("protocol")["value"]
    spread = (accuracy.max() - accuracy.min()).max()
    assert spread < claims.CLOSE < spread + 0.005
