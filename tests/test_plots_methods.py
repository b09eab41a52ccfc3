"""Figures and tables of methods beside each other: what is drawn is what is in the table."""

import numpy as np
import pandas as pd
import pytest

from osnb import plots
from osnb.evidence import across
from osnb.evidence.build import Evidence

FINDINGS = [("MLS above MSP", "mls", "msp", "above"), ("near ARPL", "mls", "arpl", "within")]
ROWS = [
    ("mnist", "0", "msp", "baseline"),
    ("mnist", "1", "msp", "baseline"),
    ("mnist", "0", "mls", "strong"),
    ("mnist", "1", "mls", "strong"),
    ("mnist", "0", "arpl", "baseline"),
    ("svhn", "0", "msp", "baseline"),
]


def evidence(seed=0, resamples=200):
    """Six runs."""
    keys = pd.DataFrame(ROWS, columns=["place", "split", "printed", "regime"])
    keys = keys.assign(run=[f"run{i}" for i in range(len(ROWS))], network="conv 16")
    rng = np.random.default_rng(seed)
    auroc = np.linspace(0.6, 0.9, len(ROWS))[:, None] + rng.normal(0, 0.02, (6, 1 + resamples))
    return Evidence(keys, {"auroc": auroc, "accuracy": np.clip(auroc + 0.1, 0, 1)})


def table(numbers):
    means = across.summary(numbers, "place", "printed", "regime", over="splits")
    means = means.set_index("metric")
    points = means.loc[["auroc"]].rename(columns={"value": "auroc"})
    return points.assign(accuracy=means.loc["accuracy", "value"].to_numpy())


def gains():
    points = table(evidence()).assign(kind=lambda x: x["regime"])
    cited = {"place": "mnist", "printed": "MSP, cited", "kind": "cited", "auroc": 0.98}
    return pd.concat([pd.DataFrame([cited]), points], ignore_index=True)


FIGURES = {
    "gains": lambda: plots.method_gains(gains()),
    "contrasts": lambda: plots.contrasts(across.contrasts(evidence(), FINDINGS)),
    "one data set": lambda: plots.method_gains(gains().query("place == 'mnist'")),
    "four data sets": lambda: plots.method_gains(
        pd.concat(gains().query("place == 'mnist'").assign(place=n) for n in "abcd")
    ),
}


def test_a_method_is_the_mean_of_its_splits_with_their_spread():
    values = evidence().values
    row = table(evidence()).iloc[0]
    mean = values["auroc"][:2].mean(axis=0)
    assert row["splits"] == "0, 1"
    assert row["auroc"] == pytest.approx(mean[0])
    assert row["accuracy"] == pytest.approx(values["accuracy"][:2, 0].mean())
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.percentile(mean[1:], [2.5, 97.5])))
    assert row["sd_splits"] == pytest.approx(abs(np.subtract(*values["auroc"][:2, 0])) / 2**0.5)


def test_seeds_of_a_split_count_as_one_split():
    numbers, values = evidence(), evidence().values
    row = table(numbers.at(numbers.keys.assign(split="0"))).iloc[0]
    assert row["splits"] == "0"
    assert np.isnan(row["sd_splits"])
    assert row["auroc"] == pytest.approx(values["auroc"][:2, 0].mean())


def test_a_finding_is_taken_on_the_splits_that_both_methods_have():
    above, none, within, _ = across.contrasts(evidence(), FINDINGS).to_dict("records")
    auroc = evidence().values["auroc"][:, 0]
    assert above["number"] == pytest.approx(auroc[2:4].mean() - auroc[:2].mean())
    assert (above["splits"], above["answer"]) == ("0, 1", "holds")
    spread = abs(auroc[2] - auroc[3]) / 2**0.5
    assert within["splits"] == "0"
    assert within["number"] == pytest.approx(spread - abs(auroc[2] - auroc[4]))
    assert none["answer"] == "not run"
    assert np.isnan(none["number"])


def test_the_other_way_round_a_finding_does_not_hold_and_one_split_has_no_spread():
    other = [("MSP above MLS", "msp", "mls", "above"), ("near", "arpl", "mls", "within")]
    found = across.contrasts(evidence(), other)
    assert found.query("place == 'mnist'")["answer"].tolist() == ["does not hold", "undecided"]


def test_a_finding_of_the_miniature_is_shown_and_keeps_its_look():
    mini = evidence().at(evidence().keys.assign(size="mini"))
    found = across.contrasts(mini, FINDINGS)
    assert found["answer"].iloc[0] == "shows"
    turned = across.contrasts(mini, [("turned", "msp", "mls", "above")])
    assert turned["answer"].iloc[0] == "does not show"
    names = [text.get_text() for text in plots.contrasts(found).legends[0].get_texts()]
    assert "shows" in names
    assert "holds" not in names


def test_every_number_of_the_table_is_drawn_at_its_method():
    points = gains()
    mnist, svhn = plots.method_gains(points).axes
    for ax, name in ((mnist, "mnist"), (svhn, "svhn")):
        labels = [label.get_text() for label in mnist.get_yticklabels()]
        marks = [line for line in ax.lines if line.get_marker() not in ("None", None)]
        drawn = {
            (labels[int(y)], round(x, 9)) for m in marks for x, y in zip(*m.get_data(), strict=True)
        }
        part = points[points["place"] == name]
        assert drawn == set(zip(part["printed"], part["auroc"].round(9), strict=True))


def test_the_authors_weights_are_not_called_ours():
    kinds = gains().replace({"kind": {"strong": "released"}})
    names = [text.get_text() for text in plots.method_gains(kinds).legends[0].get_texts()]
    assert "the authors' weights" in names
    assert "ours, strong recipe" not in names


def test_the_line_below_says_what_the_intervals_were_drawn_over():
    figures = (
        plots.method_gains(gains(), over="images"),
        plots.contrasts(across.contrasts(evidence(), FINDINGS), over="images"),
    )
    assert all("95 % over images" in figure.get_supxlabel() for figure in figures)
