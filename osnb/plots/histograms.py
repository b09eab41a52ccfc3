"""Figure 4 of Palechor et al. 2023, and one threshold seen on curve, scores and counts."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from osnb import metrics
from osnb.plots.described import Figure, panels
from osnb.plots.judged import Images, judged, pictures, strip
from osnb.plots.style import (
    LOSSES,
    PROTOCOLS,
    ROLE_STYLES,
    ROLES,
    SCORES,
    finite,
    label_outside,
    laid_out,
    look,
    need,
    present,
    room_above,
)

OUTCOMES = ("right", "wrong", "rejected")


def histogram_points(
    table: pd.DataFrame, *, score: str, edges: str, bins: int = 30
) -> pd.DataFrame:
    """The bars of Figure 4: density of a score by protocol, loss and role, seeds pooled.

    Args:
        table: scores tables of all runs, with columns protocol and loss.
        score: the scoring rule's column; "target" is the true class's score for known
            samples and the largest over the known classes for the others.
        edges: "common", one set of bins for everything; "own", each histogram over its own
            range, as the authors did, so that bin widths differ.
        bins: number of bins.

    Returns:
        Frame with columns protocol, loss, role, score, edges, left, right (of a bin), samples
        and density (per unit of score).

    Raises:
        ValueError: a column is missing, a score is not finite, or edges is neither word.
    """
    need(table, ["protocol", "loss", "role", score])
    if edges not in {"common", "own"}:
        raise ValueError(f"edges is 'common' or 'own'; got {edges!r}")
    finite(table[score])
    common = np.histogram_bin_edges(table[score], bins)
    rows = []
    for (protocol, loss, role), samples in table.groupby(["protocol", "loss", "role"]):
        own = np.histogram_bin_edges(samples[score], bins) if edges == "own" else common
        rows.append(_bars(samples[score], own).assign(protocol=protocol, loss=loss, role=role))
    columns = ["protocol", "loss", "role", "score", "edges", "left", "right", "samples", "density"]
    return pd.concat(rows, ignore_index=True).assign(score=score, edges=edges)[columns]


def _bars(values: pd.Series, edges: np.ndarray) -> pd.DataFrame:
    samples, _ = np.histogram(values, edges)
    density = samples / samples.sum() / np.diff(edges)
    return pd.DataFrame(
        {"left": edges[:-1], "right": edges[1:], "samples": samples, "density": density}
    )


@laid_out
def score_histograms(points: pd.DataFrame) -> Figure:
    """Figure 4: score densities of known, negative and unknown; rows protocols, columns losses.

    The panels share the score axis; each has a density axis of its own.

    Args:
        points: as from `histogram_points`.
    """
    need(points, ["protocol", "loss", "role", "score", "edges", "left", "right", "density"])
    protocols = present(points["protocol"], list(PROTOCOLS))
    losses = present(points["loss"], list(LOSSES))
    width = min(3, 10 / len(losses))
    figure, axes = panels(len(protocols), len(losses), width=width, height=2.1, sharex=True)
    for row, protocol in zip(axes, protocols, strict=True):
        for ax, loss in zip(row, losses, strict=True):
            here = points[(points["protocol"] == protocol) & (points["loss"] == loss)]
            _stairs(ax, here)
            ax.set_title(f"{look(PROTOCOLS, protocol)['label']}, {look(LOSSES, loss)['label']}")
        row[0].set_ylabel("density")
    score, edges = points.iloc[0][["score", "edges"]]
    note = ", each histogram over its own range" if edges == "own" else ""
    figure.supxlabel(SCORES.get(score, score) + note, fontsize=9)
    label_outside(figure, axes.flat)
    return figure


def _stairs(ax: Axes, bars: pd.DataFrame) -> None:
    """Known as a filled shape, the others as outlines, so that grey print tells them apart."""
    for role in present(bars["role"], ROLES):
        part = bars[bars["role"] == role]
        edges, line = np.r_[part["left"], part["right"].iloc[-1]], look(ROLE_STYLES, role)
        if role == "known":
            line |= {"fill": True, "alpha": 0.45}
        ax.stairs(part["density"], edges, linewidth=1.5, **line)


def operating_counts(table: pd.DataFrame, *, score: str, threshold: float) -> pd.DataFrame:
    """What a threshold does to each role of one run's test samples.

    A sample is accepted if its score is at or above the threshold. Accepting a negative or
    an unknown sample is wrong whichever class it is given.

    Args:
        table: the scores table of one run.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: in the unit of the score.

    Returns:
        Frame, one row per role: role, samples, right, wrong, rejected (counts) and rate, which
        is CCR for known samples and FPR for the others, in [0, 1].

    Raises:
        ValueError: a column is missing, or a score is not finite.
    """
    need(table, ["role", "label", "pred", score])
    finite(table[score])
    accepted = table[score] >= threshold
    right = accepted & (table["role"] == "known") & (table["pred"] == table["label"])
    outcome = pd.DataFrame({"right": right, "wrong": accepted & ~right, "rejected": ~accepted})
    counts = outcome.groupby(table["role"]).sum().loc[present(table["role"], ROLES)]
    counts.insert(0, "samples", table["role"].value_counts())
    counts["rate"] = counts["wrong"].where(counts.index != "known", counts["right"])
    counts["rate"] /= counts["samples"]
    return counts.reset_index()


@laid_out
def operating_point(
    table: pd.DataFrame, *, score: str, threshold: float, images: Images | None = None
) -> Figure:
    """One threshold three times: on the OSCR curve, over the scores, and in counts.

    With images, two rows of them below: the unknown samples that are accepted with the highest
    scores, and the known ones that are rejected with the lowest.

    Args:
        table: the scores table of one run, with known samples and others.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: in the unit of the score; a score at it is accepted.
        images: (N, H, W), (N, H, W, 1) or (N, H, W, 3), uint8 or floats in [0, 1], one for each
            row of the table; or a function that gives those of some of its rows; or none.

    Raises:
        ValueError: a column, the known or the other samples are missing, a score is not
            finite, or the images do not fit the rows.
    """
    counts = operating_counts(table, score=score, threshold=threshold)
    if "known" not in set(counts["role"]) or len(counts) == 1:
        raise ValueError(f"need known samples and others; got {', '.join(counts['role'])}")
    strips = 0 if images is None else 2
    figure = Figure(figsize=(10, 3.1 + 1.15 * strips))
    grid = figure.add_gridspec(1 + strips, 3, height_ratios=[3.1, *[0.75] * strips])
    curve, scores, cells = (figure.add_subplot(grid[0, k]) for k in range(3))
    _marked_curves(curve, table, score, counts)
    _marked_scores(scores, table, score, threshold)
    _cells(cells, counts)
    if images is not None:
        for place, (name, rows) in enumerate(
            judged(table, score=score, threshold=threshold).items(), 1
        ):
            shown = pictures(images, rows, len(table))
            strip(figure.add_subplot(grid[place, :]), rows, shown, score=score, name=name)
    label_outside(figure, [scores])
    return figure


def _marked_scores(ax: Axes, table: pd.DataFrame, score: str, threshold: float) -> None:
    bins = np.histogram_bin_edges(table[score], 30)
    bars = [_bars(part[score], bins).assign(role=role) for role, part in table.groupby("role")]
    _stairs(ax, pd.concat(bars))
    ax.axvline(threshold, color="black", linewidth=1)
    ax.set(xlabel=SCORES.get(score, score), ylabel="density", ylim=(0, None))
    ax.set_title(f"threshold {threshold:.3g}")


def _marked_curves(ax: Axes, table: pd.DataFrame, score: str, counts: pd.DataFrame) -> None:
    known = table[table["role"] == "known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    rate = counts.set_index("role")["rate"]
    for role in present(table.loc[table["role"] != "known", "role"], ROLES):
        other = table.loc[table["role"] == role, score].to_numpy()
        line, marker = look(ROLE_STYLES, role), ROLE_STYLES[role][2]
        ax.plot(*metrics.oscr(known[score].to_numpy(), correct, other), **line)
        ax.plot(rate[role], rate["known"], marker, color=line["color"], mec="black", ms=8)
    ax.set(xlabel="false positive rate", ylabel="correct classification rate", xlim=(-0.02, 1.02))
    ax.set_ylim(0, room_above(correct.mean()))
    ax.set_title("OSCR")


def _cells(ax: Axes, counts: pd.DataFrame) -> None:
    """Counts and shares of a role, shaded by the share."""
    shares = counts[list(OUTCOMES)].to_numpy() / counts[["samples"]].to_numpy()
    ax.imshow(shares, cmap="Greys", vmin=0, vmax=2, aspect="auto")  # black stays readable
    for (i, j), share in np.ndenumerate(shares):
        impossible = OUTCOMES[j] == "right" and counts["role"][i] != "known"
        text = "–" if impossible else f"{counts[OUTCOMES[j]][i]}\n{share:.2f}"
        ax.text(j, i, text, ha="center", va="center")
    ax.set_xticks(range(3), ["accepted,\nright", "accepted,\nwrong", "rejected"])
    ax.set_yticks(range(len(counts)), counts["role"], rotation=90, va="center")
    ax.grid(False)
    ax.set_title("samples, and share of the role")
