"""Figure 1 of Palechor et al. 2023: the superclasses of P1, P2 and P3 in the WordNet tree."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.described import Figure
from osnb.plots.style import (
    PROTOCOLS,
    ROLE_STYLES,
    ROLES,
    label_outside,
    laid_out,
    look,
    need,
    present,
)


def reduced_tree(paths: Mapping[str, Sequence[tuple[str, str]]]) -> pd.DataFrame:
    """The smallest tree that spans the given nodes: they, and where their paths part.

    Args:
        paths: for each node its (wnid, name) steps from the root down to the node itself.

    Returns:
        Frame with columns wnid, parent ("" at the top), name, depth (in the reduced tree) and
        steps (edges that the line to the parent stands for), parents before children, depth
        first, siblings by wnid.

    Raises:
        ValueError: no path, a path that does not end in its node, or paths from two roots.
    """
    _check_paths(paths)
    children: dict[str, set[str]] = {}
    for path in paths.values():
        for (above, _), (below, _) in pairwise(path):
            children.setdefault(above, set()).add(below)
    names = {wnid: name for path in paths.values() for wnid, name in path}
    rows = []

    def visit(wnid: str, parent: str, depth: int, steps: int) -> None:
        below = sorted(children.get(wnid, ()))
        if kept := wnid in paths or len(below) > 1:
            rows.append((wnid, parent, names[wnid], depth, steps if parent else 0))
        for child in below:
            if kept:
                visit(child, wnid, depth + 1, 1)
            else:
                visit(child, parent, depth, steps + 1)

    visit(next(iter(paths.values()))[0][0], "", 0, 0)
    return pd.DataFrame(rows, columns=["wnid", "parent", "name", "depth", "steps"])


def _check_paths(paths: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    roots = {path[0][0] for path in paths.values()}
    if len(roots) != 1:
        raise ValueError(f"need paths from one root; got {len(roots)}: {', '.join(sorted(roots))}")
    astray = [wnid for wnid, path in paths.items() if path[-1][0] != wnid]
    if astray:
        raise ValueError(f"need each path to end in its own node; {astray[0]}'s does not")


@laid_out
def class_tree(tree: pd.DataFrame, counts: pd.DataFrame) -> Figure:
    """Figure 1: the tree on the left, who is what in each protocol on the right.

    A row is a node. A marker says that the superclass has that role in the protocol, the
    number beside it how many of its classes do.

    Args:
        tree: as from `reduced_tree`.
        counts: columns protocol, role, superclass_wnid, classes (a count).

    Raises:
        ValueError: a column is missing, or a superclass is not in the tree.
    """
    need(tree, ["wnid", "parent", "name", "depth"])
    need(counts, ["protocol", "role", "superclass_wnid", "classes"])
    absent = sorted(set(counts["superclass_wnid"]) - set(tree["wnid"]))
    if absent:
        raise ValueError(f"need every superclass in the tree; not there: {', '.join(absent)}")
    figure = Figure(figsize=(9, 0.7 + 0.19 * len(tree)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(4, 5))
    _branches(left, tree, bold=set(counts["superclass_wnid"]))
    _markers(right, tree, counts)
    left.set_ylim(len(tree) - 0.5, -0.5)
    for ax in (left, right):
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelleft=False)
    label_outside(figure, [right])
    return figure


def _branches(ax: Axes, tree: pd.DataFrame, *, bold: set[str]) -> None:
    row = dict(zip(tree["wnid"], range(len(tree)), strict=True))
    depth = dict(zip(tree["wnid"], tree["depth"], strict=True))
    for wnid, parent, name in tree[["wnid", "parent", "name"]].itertuples(index=False):
        x, y = depth[wnid], row[wnid]
        if parent:
            start = depth[parent] + 0.15
            ax.plot([start, start, x], [row[parent] + 0.35, y, y], color="0.6", linewidth=0.8)
        weight, color = ("bold", "black") if wnid in bold else ("normal", "0.35")
        ax.text(x + 0.08, y, name, va="center", weight=weight, color=color, fontsize=8)
    ax.set(xlim=(0, tree["depth"].max() + 3.5), xticks=[])


def _markers(ax: Axes, tree: pd.DataFrame, counts: pd.DataFrame) -> None:
    row = dict(zip(tree["wnid"], range(len(tree)), strict=True))
    protocols = present(counts["protocol"], list(PROTOCOLS))
    ax.hlines(range(len(tree)), -0.6, 3 * len(protocols) - 0.4, color="0.93", linewidth=0.8)
    for j, role in enumerate(ROLES):
        part = counts[counts["role"] == role]
        x = 3 * part["protocol"].map(protocols.index) + j - 0.25
        y = part["superclass_wnid"].map(row)
        line, marker = look(ROLE_STYLES, role), ROLE_STYLES[role][2]
        ax.plot(x, y, marker, color=line["color"], label=line["label"], markersize=6)
        for at, level, count in zip(x, y, part["classes"], strict=True):
            ax.text(at + 0.2, level, str(count), va="center", fontsize=8)
    for i in range(1, len(protocols)):
        ax.axvline(3 * i - 0.5, color="0.8", linewidth=0.8)
    names = [f"{look(PROTOCOLS, name)['label']} (classes)" for name in protocols]
    ax.set_xticks([3 * i + 1 for i in range(len(protocols))], names)
    ax.xaxis.tick_top()
    ax.set_xlim(-0.6, 3 * len(protocols) - 0.4)
