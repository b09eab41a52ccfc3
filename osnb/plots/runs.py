"""Runs of any name beside each other."""

import pandas as pd

from osnb.evidence.frames import POINTS, need
from osnb.plots.draw import facets, finished, lines
from osnb.plots.style import UNITS, Figure, laid_out, looks, room_above


@laid_out
def run_curves(points: pd.DataFrame) -> Figure:
    """OSCR with a logarithmic FPR axis, a line for each run; rows are roles, columns benchmarks.

    Args:
        points: as from `oscr_points`, the run's name as method.
    """
    need(points, POINTS)
    styles = looks(points["method"].unique())
    size = {"width": 3.6, "height": 2.5, "sharex": True, "sharey": True}
    figure, parts = facets(points, "role", "benchmark", **size)
    for ax, part, _ in parts:
        lines(ax, part[part["fpr"] > 0], "fpr", "ccr", by="method", styles=styles)
    least = 0.7 * points.loc[points["fpr"] > 0, "fpr"].min()
    parts[0][0].set(xscale="log", xlim=(least, 1.4), ylim=(0, room_above(points["high"])))
    about = f"band: 95 % bootstrap interval over test {UNITS[points['over'].iloc[0]]}"
    return finished(figure, x="false positive rate", y="correct classification rate", about=about)
