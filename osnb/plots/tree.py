"""Classes in the WordNet tree, by role (Palechor et al. 2023, Kim et al. 2021)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from osnb.evidence.frames import need
from osnb.plots.draw import bare, facets, figure_of, finished, legend
from osnb.plots.style import PROTOCOLS, ROLES, Figure, label, laid_out, looks, present

NODES = ["wnid", "parent", "name", "depth"]
Paths = Mapping[str, Sequence[tuple[str, str]]]
ROLE_HATCHES = dict(zip(ROLES, ("", "///", "..."), strict=True))


def gathered(paths: Paths, *, least: int) -> dict[str, tuple[tuple[str, str], ...]]:
    """For each class, the path to the lowest node above it that has `least` classes below.

    With it, hundreds of classes become a tree of few rows: see `reduced_tree` and `class_tree`.

    Args:
        paths: for each class its (wnid, name) steps from the root down to the class itself.
        least: number of classes, >= 1; where not even the root has so many, the root.

    Raises:
        ValueError: `least` is below 1.
    """
    if least < 1:
        raise ValueError(f"need at least 1 class; got {least}")
    below = Counter(step for path in paths.values() for step in path[:-1])
    shorter = {}
    for wnid, path in paths.items():
        full = sum(below[step] >= least for step in path[:-1])  # falls from the root down
        shorter[wnid] = tuple(path[: max(full, 1)])
    return shorter


def reduced_tree(paths: Paths) -> pd.DataFrame:
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
    roots = {path[0][0] for path in paths.values()}
    if len(roots) != 1:
        raise ValueError(f"need paths from one root; got {len(roots)}: {', '.join(sorted(roots))}")
    if astray := [wnid for wnid, path in paths.items() if path[-1][0] != wnid]:
        raise ValueError(f"need each path to end in its own node; {astray[0]}'s does not")
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
            visit(child, *((wnid, depth + 1, 1) if kept else (parent, depth, steps + 1)))

    visit(roots.pop(), "", 0, 0)
    return pd.DataFrame(rows, columns=["wnid", "parent", "name", "depth", "steps"])


def counted_tree(gathered: Paths, counts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tree of some superclasses, and its nodes beside the numbers of classes.

    Args:
        gathered: as from `gathered`, for every class.
        counts: one row per superclass and role, column superclass_wnid.

    Returns:
        The tree as from `reduced_tree`, and it with the columns of `counts`: a row for each role
        of a node, one without numbers for a node that is no superclass.
    """
    ends = {path[-1][0]: path for path in gathered.values()}
    tree = reduced_tree({wnid: ends[wnid] for wnid in counts["superclass_wnid"]})
    return tree, tree.merge(counts, left_on="wnid", right_on="superclass_wnid", how="left")


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
    need(counts, ["protocol", "role", "superclass_wnid", "classes"])
    figure = Figure(figsize=(9, 0.7 + 0.19 * len(tree)))
    axes = figure.subplots(1, 2, sharey=True, width_ratios=(4, 5))
    _branches(axes[0], tree, _bold(tree, counts))
    protocols = present(counts["protocol"], PROTOCOLS)
    for i, protocol in enumerate(protocols):
        _markers(axes[1], tree, counts[counts["protocol"] == protocol], 3 * i)
    for i in range(1, len(protocols)):
        axes[1].axvline(3 * i - 0.5, color="0.8", linewidth=0.8)
    names = [f"{label(name)} (classes)" for name in protocols]
    axes[1].set_xticks([3 * i + 1 for i in range(len(protocols))], names)
    axes[1].set_xlim(-0.6, 3 * len(protocols) - 0.4)
    legend(figure, axes)
    return figure


@laid_out
def role_tree(tree: pd.DataFrame, classes: pd.DataFrame, counts: pd.DataFrame) -> Figure:
    """The tree on the left, each superclass's classes by role, and the sums on the right.

    A superclass without a marker is out.

    Args:
        tree: as from `reduced_tree`.
        classes: of one protocol, columns superclass_wnid and role; a row is a class.
        counts: one row per role: role, classes and more columns of numbers.

    Raises:
        ValueError: a column is missing, or a superclass is not in the tree.
    """
    need(classes, ["superclass_wnid", "role"])
    need(counts, ["role", "classes"])
    figure = Figure(figsize=(9.5, 0.7 + 0.17 * len(tree)))
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 2.2, 2.2))
    _branches(left, tree, _bold(tree, classes))
    sizes = classes.groupby(["superclass_wnid", "role"]).size().reset_index(name="classes")
    _markers(middle, tree, sizes, 0)
    middle.set_xticks(range(len(ROLES)), ROLES)
    middle.set(xlim=(-0.5, 2.7), ylim=left.get_ylim(), title="classes of each superclass")
    _sums(right, counts)
    return figure


def marked_tree(paths: Paths, marks: Mapping[str, str], *, panel: str) -> pd.DataFrame:
    """A panel of `marked_trees`: the smallest tree of some nodes, each with its mark and wnid.

    Args:
        paths: for each node at least its (wnid, name) steps from the root down to the node itself.
        marks: what each of the nodes is.
        panel: title.

    Returns:
        As from `reduced_tree`, with columns panel and mark ("" of nodes that are not asked for).
    """
    tree = reduced_tree({wnid: paths[wnid] for wnid in marks})
    mark = tree["wnid"].map(marks).fillna("")
    named = tree["name"].where(mark == "", tree["name"] + " " + tree["wnid"])
    return tree.assign(name=named, panel=panel, mark=mark)


@figure_of("panel", "mark", *NODES)
def marked_trees(nodes: pd.DataFrame) -> Figure:
    """Figures 3 and 4 of Kim et al. 2021: parts of the tree, a colour for what a node is.

    Args:
        nodes: as from `marked_tree`, one below the other. Panels and colours stand in order of
            appearance.

    Raises:
        ValueError: a column is missing.
    """
    marks = looks([mark for mark in present(nodes["mark"]) if mark])
    longest = nodes.groupby("panel").size().max()
    figure, parts = facets(nodes, "panel", size=(5, 0.9 + 0.2 * longest))
    for ax, part, _ in parts:
        marked = part[part["mark"] != ""].set_index("wnid")["mark"]
        _branches(ax, part, {wnid: marks[mark]["color"] for wnid, mark in marked.items()})
        for mark, look in marks.items():
            (rows,) = np.nonzero(part["mark"] == mark)
            ax.plot(part["depth"].iloc[rows], rows, **look | {"linestyle": "none", "markersize": 4})
        ax.set(ylim=(longest - 0.5, -0.5))
    return finished(figure)


def _bold(tree: pd.DataFrame, counts: pd.DataFrame) -> dict[str, str]:
    """The colour of the superclasses that `counts` speaks of."""
    need(tree, NODES)
    if lost := sorted(set(counts["superclass_wnid"]) - set(tree["wnid"])):
        raise ValueError(f"need every superclass in the tree; not there: {', '.join(lost)}")
    return dict.fromkeys(counts["superclass_wnid"], "black")


def _branches(ax: Axes, tree: pd.DataFrame, marked: Mapping[str, str]) -> None:
    """The tree, a row a node from the top down, in bold and in its colour what is marked."""
    row = {wnid: place for place, wnid in enumerate(tree["wnid"])}
    depth = dict(zip(tree["wnid"], tree["depth"], strict=True))
    for wnid, parent, name in tree[["wnid", "parent", "name"]].itertuples(index=False):
        x, y = depth[wnid], row[wnid]
        if parent:
            start = depth[parent] + 0.15
            ax.plot([start, start, x], [row[parent] + 0.35, y, y], color="0.6", linewidth=0.8)
        weight, color = ("bold", marked[wnid]) if wnid in marked else ("normal", "0.35")
        ax.text(x + 0.08, y, name, va="center", weight=weight, color=color, fontsize=8)
    bare(ax)
    # the root's marker, at 0, is whole
    ax.set(xlim=(-0.2, tree["depth"].max() + 3.5), ylim=(len(tree) - 0.5, -0.5))


def _markers(ax: Axes, tree: pd.DataFrame, counts: pd.DataFrame, left: float) -> None:
    """A column for each role from `left` on: a marker, and how many classes a superclass has."""
    bare(ax)
    ax.hlines(range(len(tree)), left - 0.6, left + 2.7, color="0.93", linewidth=0.8)
    for x, (role, look) in enumerate(looks(ROLES, ROLES).items(), left):
        part = counts[counts["role"] == role]
        levels = part["superclass_wnid"].map({w: row for row, w in enumerate(tree["wnid"])})
        if len(part):
            ax.plot([x - 0.25] * len(part), levels, **look | {"linestyle": "none"})
        for level, classes in zip(levels, part["classes"], strict=True):
            ax.text(x - 0.05, level, str(classes), va="center", fontsize=8)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)


def _sums(ax: Axes, counts: pd.DataFrame) -> None:
    """A bar for each role, as long as its number of classes, all numbers below it."""
    beside = ax.transData + ScaledTranslation(0.06, 0, ax.figure.dpi_scale_trans)
    for place, row in enumerate(counts.to_dict("records")):
        role = row.pop("role")
        look = {"color": looks([role], ROLES)[role]["color"], "hatch": ROLE_HATCHES.get(role, "")}
        ax.barh(place, row["classes"], height=0.3, edgecolor="white", **look)
        words = "\n".join(f"{number:,} {name}" for name, number in row.items())
        ax.text(0, place + 0.2, words, va="top", fontsize=8, transform=beside)
    ax.set_yticks(range(len(counts)), counts["role"])
    ax.set(ylim=(len(counts) - 0.2, -0.4), xlabel="classes", title="the protocol")
    ax.grid(visible=False, axis="y")
