"""The protocol explorer: a superclass to choose, and a role to give it."""

from collections.abc import Callable, Mapping

import ipywidgets
import pandas as pd

from osnb import plots
from osnb.widgets.explorer import STYLE, WIDEST, Explorer

PRINTED = "as in the protocol"
CHOICES = (PRINTED, "known", "negative", "unknown", "out")


class ProtocolExplorer(Explorer):
    """What `protocol_explorer` returns.

    Attributes:
        superclass: SelectionSlider over wnids by name, in the order of the tree; choosing one
            shows its role in `role`.
        role: SelectionSlider; choosing a role moves the superclass and redraws.
        roles: the moves so far, role by wnid.
        classes: the protocol after them.
        figure: `plots.role_tree` of it.
    """

    kind = "two sliders, which need"

    def __init__(
        self,
        classes: pd.DataFrame,
        tree: pd.DataFrame,
        *,
        move: Callable[[pd.DataFrame, Mapping[str, str]], pd.DataFrame],
        count: Callable[[pd.DataFrame], pd.DataFrame],
    ) -> None:
        self._printed, self._tree, self._move, self._count = classes, tree, move, count
        self.roles: dict[str, str] = {}
        self.show()
        named = zip(tree["name"], tree["wnid"], tree["parent"], strict=True)
        options = [(name, wnid) for name, wnid, parent in named if parent]
        # no menus: JupyterLab takes the arrow keys away from those
        layout = ipywidgets.Layout(width="700px", max_width=WIDEST)
        first = classes["superclass_wnid"].iloc[0]
        self.superclass = ipywidgets.SelectionSlider(
            options=options, value=first, description="superclass", style=STYLE, layout=layout
        )
        self.role = ipywidgets.SelectionSlider(
            options=CHOICES, value=PRINTED, description="role", style=STYLE, layout=layout
        )
        super().__init__([self.superclass, self.role], lambda: None)
        self.superclass.observe(lambda _: self._chosen(), names="value")
        self.role.observe(lambda change: self._moved(change["new"]), names="value")

    def _chosen(self) -> None:
        self.role.value = self.roles.get(self.superclass.value, PRINTED)

    def _moved(self, role: str) -> None:
        """Give the chosen superclass a role, or say why that is refused."""
        before, wnid = self.roles, self.superclass.value
        if before.get(wnid, PRINTED) == role:
            return
        self.roles = {w: r for w, r in before.items() if w != wnid}
        if role != PRINTED:
            self.roles[wnid] = role
        try:
            self.show()
        except ValueError as refused:
            self.roles = before
            self.role.value = before.get(wnid, PRINTED)
            self.put(self.figure, f"not moved: {refused}")

    def show(self) -> None:
        """Redraw the picture and rewrite the sentence for the moves so far."""
        self.classes = self._move(self._printed, self.roles)
        counts = self._count(self.classes)
        words = "; ".join(
            f"{row.role}: {row.classes} classes" for row in counts.itertuples(index=False)
        )
        self.put(plots.role_tree(self._tree, self.classes, counts), words)


def protocol_explorer(
    classes: pd.DataFrame,
    tree: pd.DataFrame,
    *,
    move: Callable[[pd.DataFrame, Mapping[str, str]], pd.DataFrame],
    count: Callable[[pd.DataFrame], pd.DataFrame],
) -> ProtocolExplorer:
    """A protocol's class tree, its superclasses to be moved between roles, and what it counts.

    The static twin, for readers without a kernel, is `plots.role_tree`.

    Args:
        classes: what a protocol gave.
        tree: from `plots.reduced_tree`, with all superclasses that can be moved.
        move: (classes, role by wnid) -> classes, such as `protocols.moved`; a ValueError refuses
            the move, its text is shown.
        count: classes -> frame with role, classes and more columns of numbers, such as
            `protocols.class_counts`.

    Raises:
        ValueError: a superclass is not in the tree.
    """
    return ProtocolExplorer(classes, tree, move=move, count=count)
