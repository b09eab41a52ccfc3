"""Figures of appendix F: what is drawn is what is in the table, and nothing is clipped."""

import itertools

import numpy as np
import pandas as pd

from osnb import plots

SETS = {"other drawings": True, "digits": False, "Gaussian noise": False}
RULES = ("MSP", "MLS", "a rule with a long name")
TABLE = pd.DataFrame(
    [
        (rule, name, near, value)
        for (rule, (name, near)), value in zip(
            itertools.product(RULES, SETS.items()), np.linspace(0.01, 0.99, 9), strict=True
        )
    ],
    columns=["printed", "source", "near", "auroc"],
)
ENDED = TABLE.assign(low=TABLE["auroc"] - 0.01, high=TABLE["auroc"] + 0.01)
FIGURES = {
    "rules": lambda: plots.rules_by_set(TABLE),
    "rules_with_ends": lambda: plots.rules_by_set(ENDED),
    "rules_with_seeds": lambda: plots.rules_by_set(ENDED, pd.concat([TABLE, TABLE])),
}


def lines(figure):
    """The drawn markers, by label."""
    return {line.get_label(): line for line in figure.axes[0].lines if line.get_marker() != "None"}


def test_every_rule_stands_in_its_row_with_its_value_and_the_best_one_above():
    figure = plots.rules_by_set(TABLE)
    rows = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert rows == list(RULES[::-1])  # the values grow from rule to rule
    drawn = lines(figure)
    for name, near in SETS.items():
        line = drawn[f"{name} ({'near' if near else 'far'})"]
        found = {rows[round(y)]: x for x, y in line.get_xydata()}
        part = TABLE[TABLE["source"] == name].set_index("printed")["auroc"]
        assert found == part.to_dict()
        assert (line.get_markerfacecolor() != "white") == near


def test_single_seeds_are_dots_in_the_row_of_their_mean_where_there_are_several():
    singles = TABLE.loc[[1, 1, 2], ["printed", "source", "auroc"]].assign(auroc=[0.0, 0.25, 0.5])
    figure = plots.rules_by_set(TABLE, singles)
    (dots,) = [line for line in figure.axes[0].lines if line.get_markersize() <= 3]
    assert dots.get_xdata().tolist() == [0.0, 0.25]  # one seed of its own is the marker itself
    mean = lines(figure)["digits (far)"]
    (at,) = [y for x, y in mean.get_xydata() if x == TABLE.loc[1, "auroc"]]
    assert dots.get_ydata().tolist() == [at, at]
    assert dots.get_color() == mean.get_markeredgecolor()
    assert "single runs" in figure.get_supxlabel()
    alone = plots.rules_by_set(TABLE, singles[2:])
    assert len(alone.axes[0].lines) == len(plots.rules_by_set(TABLE).axes[0].lines)


def test_sets_differ_in_colour_and_in_marker():
    drawn = lines(plots.rules_by_set(TABLE)).values()
    looks = [(line.get_markeredgecolor(), line.get_marker()) for line in drawn]
    assert all(len(set(look)) == 3 for look in zip(*looks, strict=True))


def test_without_a_run_a_figure_says_so():
    (text,) = plots.rules_by_set(TABLE.head(0)).axes[0].texts
    assert text.get_text() == "no finished run"
