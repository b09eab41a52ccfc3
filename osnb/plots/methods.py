"""Methods beside each other: Tables 1 and 6, Figures 1a and 8 and appendix F of Vaze et al. 2022.

Keys and values are an `Evidence`'s: n rows, and (n, 1 + R) numbers and resamples.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.plots.draw import absent, facets, finished, panels, ranked
from osnb.plots.style import Figure, laid_out, looks, need, present

KINDS = {
    "cited": ("#222222", "-", "D", "printed in the paper, on its own data"),
    "baseline": ("#d9822b", "-", "o", "ours, baseline recipe"),
    "strong": ("#1f5f99", "-", "s", "ours, strong recipe"),
}
ANSWERS = {
    "holds": ("#1f5f99", "-", "o", "holds"),
    "does not hold": ("#8b1a4a", "-", "X", "does not hold"),
    "cannot be told": ("#8a8a8a", "-", "s", "cannot be told"),
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
        auroc, numbers = np.mean([*splits.values()], axis=0), [x[0] for x in splits.values()]
        row = {"dataset": dataset, "method": method} | part[["recipe", "model"]].iloc[0].to_dict()
        row["splits"] = ", ".join(splits)
        row |= dict(zip(("auroc", "low", "high"), metrics.interval(auroc), strict=True))
        row["sd_splits"] = np.std(numbers, ddof=1) if len(numbers) > 1 else np.nan
        row["accuracy"] = np.mean([x[0] for x in right.values()])
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
    methods = present(points["method"])
    width = 10 / min(3, max(2, points["dataset"].nunique()))
    size = {"width": width, "height": 1.2 + 0.24 * len(methods), "sharey": True}
    figure, parts = facets(points, "dataset", wrap=3, **size)
    styles = looks(KINDS, KINDS)
    styles["cited"]["markerfacecolor"] = "white"
    row = {"rows": "method", "names": methods, "by": "kind", "styles": styles}
    for ax, part, (name,) in parts:
        ranked(ax, part, "auroc", **row)
        for one in part.dropna(subset="accuracy").itertuples():
            at, text = methods.index(one.method), f"{one.accuracy:.3f} ({one.splits})"
            ax.text(1.02, at, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
        ax.axvline(0.5, color="0.6", linewidth=0.8)
        ax.set_title("")
        ax.set_title(name, loc="left")
        ax.set_title("accuracy (splits)", loc="right", fontsize=8, color="0.4")
    return finished(figure, x="AUROC", about="lines: 95 % over classes, a bootstrap; 0.5 is chance")


@laid_out
def contrasts(points: pd.DataFrame) -> Figure:
    """Each finding's number with its interval, a panel a data set; right of 0 it holds.

    Args:
        points: as from `contrast_points`; what was not run has no mark.
    """
    need(points, ["finding", "dataset", "number", "low", "high", "answer"])
    findings = present(points["finding"])
    width, height = 9.6 / max(points["dataset"].nunique(), 1.4), 1.2 + 0.3 * len(findings)
    figure, parts = facets(points, "dataset", width=width, height=height, sharey=True)
    row = {"rows": "finding", "names": findings, "by": "answer", "styles": looks(ANSWERS, ANSWERS)}
    for ax, part, _ in parts:
        ranked(ax, part, "number", **row)
        ax.axvline(0, color="black", linewidth=0.8)
    about = "lines: 95 % over classes, the same draws for both methods"
    return finished(figure, x="AUROC, difference", about=about)


@laid_out
def rules_by_set(table: pd.DataFrame, singles: pd.DataFrame | None = None) -> Figure:
    """AUROC of every rule on every set of unknown images: a row a rule, a marker a set.

    Near sets have filled markers, far ones hollow. The best rule in the mean over all sets
    stands above. Without rows the figure says that there is no run.

    Args:
        table: one row per rule and set, columns rule, unknown (the set), near (bool) and auroc in
            [0, 1], with optional low and high of an interval. Sets stand in the order of the rows.
        singles: what the numbers are means of, such as single seeds: columns rule, unknown and
            auroc, several rows per rule and set. They are small dots in the set's colour; a rule
            and set with a single row has none, and no table is as one without rows.

    Raises:
        ValueError: a column is missing.
    """
    if none := absent(table, ["rule", "unknown", "near", "auroc"]):
        return none
    rules = table.groupby("rule")["auroc"].mean().sort_values(ascending=False).index
    near = table.groupby("unknown", sort=False)["near"].first()
    styles = looks(near.index)
    for name in styles:
        styles[name]["label"] = f"{name} ({'near' if near[name] else 'far'})"
        styles[name]["markerfacecolor"] = styles[name]["color"] if near[name] else "white"
    figure, axes = panels(1, 1, width=8, height=1.6 + 0.36 * len(rules))
    row = {"rows": "rule", "names": rules, "by": "unknown", "apart": 0.7 / len(near)}
    ax = axes[0, 0]
    ax.axvline(0.5, color="0.6", linewidth=0.9)
    about = ""
    if singles is not None and singles.duplicated(["rule", "unknown"]).any():
        several = singles[singles.duplicated(["rule", "unknown"], keep=False)]
        small = {"marker": ".", "markersize": 3, "label": ""}
        dots = {name: look | small for name, look in styles.items()}
        ranked(ax, several[["rule", "unknown", "auroc"]], "auroc", styles=dots, **row)
        about = "dots: single seeds, where the marker is a mean of several"
    ranked(ax, table, "auroc", styles=styles, **row)
    ax.set_xlim(-0.03, 1.03)
    x = "AUROC, known against one set of unknown images (grey line: chance)"
    return finished(figure, x=x, y="rule", about=about)
