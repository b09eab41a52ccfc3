"""Tables 1 and 6 and Figure 1a of Vaze et al. 2022: methods beside each other on a data set.

Keys and values are an `osnb.claims.Evidence`'s: n rows, and (n, 1 + R) numbers and resamples.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.style import (
    label_outside,
    laid_out,
    need,
    note,
)

KINDS = {  # colour, marker and name
    "cited": ("#222222", "D", "printed in the paper, on its own data"),
    "baseline": ("#d9822b", "o", "ours, baseline recipe"),
    "strong": ("#1f5f99", "s", "ours, strong recipe"),
}
ANSWERS = {
    "holds": ("#1f5f99", "o", "holds"),
    "does not hold": ("#8b1a4a", "X", "does not hold"),
    "cannot be told": ("#8a8a8a", "s", "cannot be told"),
}
KEYS = ["run", "dataset", "split", "method", "recipe", "model"]
Values = Mapping[str, np.ndarray]


def method_points(keys: pd.DataFrame, values: Values) -> pd.DataFrame:
    """AUROC and accuracy of each method on each data set, the mean over its splits (Table 1).

    Args:
        keys: n rows, columns run, dataset, split, method, recipe and model.
        values: auroc and accuracy, (n, 1 + R) each, rates in [0, 1].

    Returns:
        One row per data set and method, in order of appearance: dataset, method, recipe, model,
        splits (names, in text), auroc, low and high (where 95 % of the resamples of the mean
        lie), sd_splits (of AUROC, divisor n - 1; NaN for one split), accuracy, and run (names).

    Raises:
        ValueError: a column or a measure is missing, or there is no resample.
    """
    _checked(keys, values)
    rows = []
    for (dataset, method), part in keys.groupby(["dataset", "method"], sort=False):
        splits, right = (_by_split(part, values[name]) for name in ("auroc", "accuracy"))
        auroc, each = np.mean([*splits.values()], axis=0), [x[0] for x in splits.values()]
        row = {"dataset": dataset, "method": method} | part[["recipe", "model"]].iloc[0].to_dict()
        row["splits"] = ", ".join(splits)
        row |= dict(zip(("auroc", "low", "high"), metrics.interval(auroc), strict=True))
        row["sd_splits"] = np.std(each, ddof=1) if len(each) > 1 else np.nan
        row["accuracy"] = np.mean([found[0] for found in right.values()])
        rows.append(row | {"run": ", ".join(part["run"])})
    return pd.DataFrame(rows)


def contrast_points(
    keys: pd.DataFrame, values: Values, findings: Sequence[tuple[str, str, str, str]]
) -> pd.DataFrame:
    """Findings about two methods, decided on each data set; the two are paired.

    Both are taken on the splits that they share, with the same resamples. Kind "above" has the
    number AUROC(first) - AUROC(second), "within" the standard deviation of the first over all its
    splits (divisor n - 1) minus the distance of the two. A finding holds if its number's 95 %
    interval lies above 0, does not hold if below, and cannot be told else, or of a single split.

    Args:
        keys, values: as for `method_points`.
        findings: (finding in words, first method, second method, kind) of each.

    Returns:
        finding, dataset, splits (shared ones), number, low, high (rates; NaN without a split
        that both have) and answer (as above; there "not run").

    Raises:
        ValueError: a column or a measure is missing, or a kind is neither word.
    """
    _checked(keys, values)
    if odd := {kind for *_, kind in findings} - {"above", "within"}:
        raise ValueError(f"a finding is of kind above or within; got {sorted(odd)}")
    rows = []
    for finding, first, second, kind in findings:
        for dataset, part in keys.groupby("dataset", sort=False):
            sides = [part[part["method"] == name] for name in (first, second)]
            one, two = (_by_split(side, values["auroc"]) for side in sides)
            shared = [split for split in one if split in two]
            key = {"finding": finding, "dataset": dataset, "splits": ", ".join(shared)}
            rows.append(key | _decided(one, two, shared, kind))
    return pd.DataFrame(rows)


def _decided(one: dict, two: dict, shared: list[str], kind: str) -> dict:
    if not shared or (kind == "within" and len(one) == 1):
        answer = "cannot be told" if shared else "not run"
        return dict.fromkeys(("number", "low", "high"), np.nan) | {"answer": answer}
    number = np.mean([one[split] - two[split] for split in shared], axis=0)
    if kind == "within":
        number = np.std([*one.values()], axis=0, ddof=1) - np.abs(number)
    value, low, high = metrics.interval(number)
    answer = "holds" if low > 0 else "does not hold" if high < 0 else "cannot be told"
    return {"number": value, "low": low, "high": high, "answer": answer}


def _checked(keys: pd.DataFrame, values: Values) -> None:
    need(keys, KEYS)
    shapes = {name: np.shape(values.get(name, ())) for name in ("auroc", "accuracy")}
    if any(len(s) != 2 or s[0] != len(keys) or s[1] < 2 for s in shapes.values()):
        raise ValueError(f"need auroc and accuracy of ({len(keys)}, 1 + R), R >= 1; got {shapes}")


def _by_split(part: pd.DataFrame, column: np.ndarray) -> dict[str, np.ndarray]:
    """(1 + R,) of each split, the mean over its seeds; `column` lies beside the whole keys."""
    at = part.reset_index().groupby(part["split"].to_numpy()).indices
    rows = part.index.to_numpy()
    return {split: column[rows[at[split]]].mean(axis=0) for split in sorted(at)}


@laid_out
def method_gains(points: pd.DataFrame) -> Figure:
    """Figure 1a: AUROC of methods, a panel a data set, accuracy in figures beside each number.

    Args:
        points: columns dataset, method, kind (cited, baseline, strong), auroc, low, high, accuracy
            (rates), splits (names); the last four may be NaN. Panels, and methods from the top
            down, stand in the order of the rows.
    """
    need(points, ["dataset", "method", "kind", "auroc", "low", "high", "accuracy", "splits"])
    names, methods = (list(dict.fromkeys(points[c])) for c in ("dataset", "method"))
    columns, height = min(3, len(names)), 1.2 + 0.24 * len(methods)
    size = {"width": 10 / max(2, columns), "height": height, "sharey": True}
    figure, axes = panels(-(-len(names) // columns), columns, **size)
    for ax, name in zip(axes.flat, names, strict=False):
        part = points[points["dataset"] == name]
        _marks(ax, part, part["method"].map(methods.index), "auroc", "kind", KINDS)
        for row in part.dropna(subset="accuracy").itertuples():
            at, text = methods.index(row.method), f"{row.accuracy:.3f} ({row.splits})"
            ax.text(1.02, at, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
        ax.axvline(0.5, color="0.6", linewidth=0.8)
        ax.set(xlabel="AUROC", ylim=(len(methods) - 0.4, -0.6))
        ax.set_title(name, loc="left")
        ax.set_title("accuracy (splits)", loc="right", fontsize=8, color="0.4")
        ax.set_yticks(range(len(methods)), methods)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    label_outside(figure, axes.flat)
    note(figure, "lines: 95 % over classes, a bootstrap; 0.5 is chance")
    return figure


@laid_out
def contrasts(points: pd.DataFrame) -> Figure:
    """Each finding's number with its interval, a panel a data set; right of 0 it holds.

    Args:
        points: as from `contrast_points`; what was not run has no mark.
    """
    need(points, ["finding", "dataset", "number", "low", "high", "answer"])
    names, findings = (list(dict.fromkeys(points[c])) for c in ("dataset", "finding"))
    size = {"width": 9.6 / max(len(names), 1.4), "height": 1.2 + 0.3 * len(findings)}
    figure, axes = panels(1, len(names), **size)
    for ax, name in zip(axes[0], names, strict=True):
        part = points[points["dataset"] == name]
        _marks(ax, part, part["finding"].map(findings.index), "number", "answer", ANSWERS)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set(title=name, xlabel="AUROC, difference", ylim=(len(findings) - 0.4, -0.6))
        ax.set_yticks(range(len(findings)), findings if ax is axes[0, 0] else [""] * len(findings))
    label_outside(figure, axes[0])
    note(figure, "lines: 95 % over classes, the same draws for both methods")
    return figure


def _marks(ax: Axes, part: pd.DataFrame, at: pd.Series, x: str, by: str, styles: dict) -> None:
    """A mark a row at its height, with a line from low to high, in the style of `by`."""
    for name, (color, marker, label) in styles.items():
        rows = (part[by] == name) & part[x].notna()
        if rows.any():
            ax.hlines(at[rows], part.loc[rows, "low"], part.loc[rows, "high"], color, lw=1.5)
            face = "white" if name == "cited" else color
            ax.plot(part.loc[rows, x], at[rows], marker, color=color, mfc=face, label=label)
