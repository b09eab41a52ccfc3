"""One protocol in the WordNet tree, with what each role counts: the protocol explorer's twin."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from osnb.plots.described import Figure
from osnb.plots.style import ROLE_STYLES, ROLES, laid_out, look, need
from osnb.plots.tree import _branches

HATCHES = dict(zip(ROLES, ("", "///", "..."), strict=True))


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
    need(tree, ["wnid", "parent", "name", "depth"])
    need(classes, ["superclass_wnid", "role"])
    need(counts, ["role", "classes"])
    absent = sorted(set(classes["superclass_wnid"]) - set(tree["wnid"]))
    if absent:
        raise ValueError(f"need every superclass in the tree; not there: {', '.join(absent)}")
    figure = Figure(figsize=(9.5, 0.7 + 0.17 * len(tree)))
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 2.2, 2.2))
    _branches(left, tree, bold=set(classes["superclass_wnid"]))
    _columns(middle, tree, classes)
    for ax in (left, middle):
        ax.set_ylim(len(tree) - 0.5, -0.5)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelleft=False)
    _sums(right, counts)
    return figure


def _columns(ax: Axes, tree: pd.DataFrame, classes: pd.DataFrame) -> None:
    """A column for each role: a marker where the superclass has it, and the number of classes."""
    row = dict(zip(tree["wnid"], range(len(tree)), strict=True))
    ax.hlines(range(len(tree)), -0.5, 2.7, color="0.93", linewidth=0.8)
    for j, role in enumerate(ROLES):
        sizes = classes.loc[classes["role"] == role, "superclass_wnid"].value_counts()
        color, marker = look(ROLE_STYLES, role)["color"], ROLE_STYLES[role][2]
        levels = [row[wnid] for wnid in sizes.index]
        ax.plot([j - 0.2] * len(levels), levels, marker, color=color, markersize=6)
        for level, size in zip(levels, sizes, strict=True):
            ax.text(j, level, str(size), va="center", fontsize=8)
    ax.set_xticks(range(len(ROLES)), ROLES)
    ax.xaxis.tick_top()
    ax.set(xlim=(-0.5, 2.7), title="classes of each superclass")


def _sums(ax: Axes, counts: pd.DataFrame) -> None:
    """A bar for each role, as long as its number of classes, all numbers below it."""
    beside = ax.transData + ScaledTranslation(0.06, 0, ax.figure.dpi_scale_trans)
    for place, row in enumerate(counts.to_dict("records")):
        role = row.pop("role")
        style = {"color": look(ROLE_STYLES, role)["color"], "hatch": HATCHES.get(role, "")}
        ax.barh(place, row["classes"], height=0.3, edgecolor="white", **style)
        words = "\n".join(f"{number:,} {name}" for name, number in row.items())
        ax.text(0, place + 0.2, words, va="top", fontsize=8, transform=beside)
    ax.set_yticks(range(len(counts)), counts["role"])
    ax.set(ylim=(len(counts) - 0.2, -0.4), xlabel="classes", title="the protocol")
    ax.grid(visible=False, axis="y")
