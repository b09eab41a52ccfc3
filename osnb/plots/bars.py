"""Bars, histograms and boxes: scores by role, classes by bin, errors by kind, gradients."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from osnb.evidence.frames import BINNED, need
from osnb.evidence.selective import RIGHT, risk_table
from osnb.plots.draw import bars, facets, figure_of, finished, panels, steps
from osnb.plots.style import COLORS, HATCHES, LOSSES, SCORES, Figure, laid_out, looks, present

LOSS_NAMES = {"softmax": "S", "background": "BG", "entropic": "EOS"}
LOSS_HATCHES = {"background": "///", "entropic": "..."}
FIRST = (RIGHT, "wrong prediction", "near")  # of the kinds, in stacked bars
BINS = {  # colour and hatch; neighbours differ in grey too
    "known": ("#6b7a8f", ""),
    "easy": ("#9fc5e0", ""),
    "easy, one list only": ("#e3eef6", "////"),
    "medium": ("#d9822b", ""),
    "hard": ("#8b1a4a", ""),
    "hard, one list only": ("#e8c9d6", "\\\\\\\\"),
    "neither": ("0.85", ""),
}


@laid_out
def score_histograms(points: pd.DataFrame, *, column: str = "method") -> Figure:
    """Figure 4: score densities of known, negative and unknown; rows benchmarks, columns methods.

    The panels share the score axis; each has a density axis of its own.

    Args:
        points: as from `histograms` by benchmark, method and role.
        column: what the columns of panels are, in the place of method.
    """
    need(points, ["benchmark", column, "role", "score", "edges", *BINNED])
    figure, parts = facets(points, "benchmark", column, width=3, height=2.1, sharex=True)
    for ax, part, _ in parts:
        steps(ax, part)
    score, edges = points.iloc[0][["score", "edges"]]
    own = ", each histogram over its own range" if edges == "own" else ""
    figure.supxlabel(SCORES.get(score, score) + own, fontsize=9)
    return finished(figure, y="density")


def _fills(column: pd.Series, sizes: pd.Series | None = None) -> dict[str, dict]:
    """Settings of bars of each bin; its label says how many classes it has."""
    fills = {}
    for name in present(column, BINS):
        color, hatch = BINS.get(name, ("0.7", "...."))
        fills[name] = {"facecolor": color, "hatch": hatch, "edgecolor": "0.3", "linewidth": 0.4}
        fills[name]["label"] = name if sizes is None else f"{name} ({sizes[name]})"
    return fills


@figure_of("bin", *BINNED)
def bin_histograms(points: pd.DataFrame, *, scale: str) -> Figure:
    """Classes over a scale of likeness or distance, the bins stacked on each other.

    Args:
        points: as from `histograms` by bin, of a table with a row a class. A bin is known, easy,
            medium or hard; what else it is called is drawn in grey.
        scale: what the value is, with its unit.
    """
    figure, axes = panels(1, 1, width=7, height=3.2)
    counts = points.pivot(index=["left", "right"], columns="bin", values="samples")
    left, right = (counts.index.get_level_values(end) for end in ("left", "right"))
    fills = _fills(points["bin"], counts.sum())
    bars(axes[0, 0], counts, fills, at=left, size=right - left, upright=True, align="edge")
    return finished(figure, x=scale, y="classes")


@figure_of("dataset", "level", "bin", "classes")
def shared_levels(counts: pd.DataFrame) -> Figure:
    """What unknown classes have in common with their nearest known class: a panel a data set.

    Args:
        counts: columns dataset, level (what is shared, in words), bin and classes (a count);
            panels, and levels from the top down, stand in the order of the rows.
    """
    figure, parts = facets(counts, "dataset", width=4.4, height=2.6)
    for ax, part, _ in parts:
        cells = {"index": "level", "columns": "bin", "values": "classes"}
        wide = part.pivot_table(**cells, aggfunc="sum", fill_value=0, sort=False)
        bars(ax, wide, _fills(part["bin"]))
        ax.bar_label(ax.containers[-1], [f"{n:.0f}" for n in wide.sum(axis=1)], padding=3)
        ax.set_xlim(0, 1.15 * wide.sum(axis=1).max())
    return finished(figure, x="unknown classes", y="shared with a known class")


@laid_out
def stacked_errors(table: pd.DataFrame, *, value: str, label: str) -> Figure:
    """A bar for each method, stacked by the kind of sample, a panel for each pool.

    Args:
        table: columns panel, printed, kind and `value` (>= 0), one row for each of the three.
        value: column that the lengths show.
        label: of the axis, with its unit.

    Raises:
        ValueError: a column is missing, or there is no row.
    """
    need(table, ["panel", "printed", "kind", value])
    fills = {}  # a kind keeps its look in a table without right samples
    for k, kind in enumerate(present([RIGHT, *sorted(table["kind"])], FIRST)):
        color = COLORS[k % len(COLORS)] if k else "0.8"
        fills[kind] = {"color": color, "hatch": HATCHES[k % len(HATCHES)], "label": kind}
    most = table.groupby("panel")["printed"].nunique().max()
    height = max(2.2, 0.9 + 0.22 * most)
    figure, parts = facets(table, "panel", wrap=2, width=4.4, height=height)
    for ax, part, _ in parts:
        wide = part.pivot(index="printed", columns="kind", values=value).fillna(0)
        here = {kind: fill for kind, fill in fills.items() if kind in wide}
        bars(ax, wide.loc[present(part["printed"])], here, size=0.75, edgecolor="white", lw=0.4)
    return finished(figure, x=label)


def accepted_at_risk(samples: pd.DataFrame, *, risk: float) -> Figure:
    """`risk_table` as bars: what each method accepts at a risk, by kind, in samples."""
    label = f"accepted samples, risk at most {risk:g}"
    return stacked_errors(risk_table(samples, risk=risk), value="accepted", label=label)


def gradient_points(logits: Sequence[float], *, background: float, weight: float) -> pd.DataFrame:
    """The derivative of S, BG and EOS by each logit of one negative sample.

    With s the softmax of the logits, for BG of those of the K known classes and the background
    (equations 3, 4 and 5 of Palechor et al. 2023):

        S:    dJ/dz_c = 0
        BG:   dJ/dz_c = weight (s_c - [c is the background])
        EOS:  dJ/dz_c = weight (s_c - 1 / K)

    Args:
        logits: (K,) of the known classes, in nats, K >= 2.
        background: the background's logit, in nats, which only BG has.
        weight: price of a negative, > 0: BG's weight of the background class, EOS's weight.

    Returns:
        loss, output (class 1, ..., background), logit, probability, gradient; a row for each
        output of each loss.

    Raises:
        ValueError: fewer than two logits, one that is not finite, or a weight that is not > 0.
    """
    known = np.asarray(logits, np.float64)
    if known.ndim != 1 or len(known) < 2 or not np.isfinite([*known, background]).all():
        raise ValueError(f"need two or more finite logits; got {logits} and {background}")
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(f"need a finite weight above 0; got {weight}")
    K, every = len(known), np.r_[known, background]
    parts = {  # logits, and what their softmax should be
        "softmax": (known, _softmax(known), 0.0),
        "background": (every, np.arange(K + 1) == K, weight),
        "entropic": (known, np.full(K, 1 / K), weight),
    }
    names = [*(f"class {c}" for c in range(1, K + 1)), "background"]
    frames = []
    for loss, (z, target, price) in parts.items():
        s = _softmax(z)
        columns = {"logit": z, "probability": s, "gradient": price * (s - target)}
        frames.append(pd.DataFrame({"loss": loss, "output": names[: len(z)]} | columns))
    return pd.concat(frames, ignore_index=True)


def _softmax(z: np.ndarray) -> np.ndarray:
    shifted = np.exp(z - z.max())
    return shifted / shifted.sum()


@figure_of("loss", "output", "logit", "gradient")
def loss_gradients(points: pd.DataFrame) -> Figure:
    """The gradients as bars, a panel for each loss, on one scale.

    A step of training moves each logit against its bar.

    Args:
        points: as from `gradient_points`.

    Raises:
        ValueError: a column is missing.
    """
    figure, parts = facets(points, "loss", width=3.2, height=2.9, sharey=True)
    limit = 1.25 * max(0.4, points["gradient"].abs().max())
    for ax, part, (loss,) in parts:
        look = {"color": looks([loss], LOSSES)[loss]["color"], "hatch": LOSS_HATCHES.get(loss, "")}
        places = range(len(part))
        bars(ax, part, {"gradient": look}, at=places, upright=True, edgecolor="white")
        texts = [f"{height:+.2f}" for height in part["gradient"]]
        ax.bar_label(ax.containers[0], texts, padding=2, fontsize=8)
        names = [f"{o}\n{z:+.2f}" for o, z in zip(part["output"], part["logit"], strict=True)]
        ax.set_xticks(places, names, fontsize=8)
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set_ylim(-limit, limit)
    return finished(figure, x="output and its logit, in nats", y="derivative of the loss")


def distance_summary(steps: np.ndarray, distance: np.ndarray) -> pd.DataFrame:
    """Quartiles of a distance between classes at each path length in WordNet.

    Args:
        steps: (P,) integers, edges between the two classes of a pair.
        distance: (P,) distance between their mean features, any unit.

    Returns:
        Frame with one row per path length: steps, pairs, low, q1, median, q3, high, where low
        and high are the 5 % and 95 % points.
    """
    groups = pd.Series(np.asarray(distance)).groupby(np.asarray(steps))
    quantiles = groups.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).unstack()
    quantiles.columns = ["low", "q1", "median", "q3", "high"]
    quantiles.insert(0, "pairs", groups.size())
    return quantiles.rename_axis("steps").reset_index()


@figure_of("steps", "pairs", "low", "q1", "median", "q3", "high")
def distance_boxes(summary: pd.DataFrame, *, title: str) -> Figure:
    """Feature distance against WordNet path length: a box per length, whiskers at 5 and 95 %.

    Args:
        summary: as from `distance_summary`.
        title: what to say above, such as the rank correlation over all pairs.
    """
    figure, axes = panels(1, 1, width=6.5, height=3.4)
    ax = axes[0, 0]
    boxes = summary.rename(columns={"low": "whislo", "median": "med", "high": "whishi"})
    fill = {"patch_artist": True, "boxprops": {"facecolor": "#c9d7e6"}}
    look = {"widths": 0.6, "showfliers": False, "medianprops": {"color": "black"}}
    ax.bxp(boxes.to_dict("records"), positions=summary["steps"], **fill | look)
    names = [f"{s}\n({n})" for s, n in zip(summary["steps"], summary["pairs"], strict=True)]
    ax.set_xticks(summary["steps"], names, fontsize=7)
    ax.set(title=title, ylim=(0, None))
    x = "path length in WordNet, in edges (pairs of classes)"
    return finished(figure, x=x, y="distance of mean features")
