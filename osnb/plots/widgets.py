"""What moves: explorers of a finished table, a figure that follows a run.

Each explorer is controls above a picture with alternative text, moved by mouse or by keyboard (Tab
from one control to the next, arrow keys within). Each has a static twin in `plots`.
"""

import base64
import html
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import ipywidgets
import pandas as pd

from osnb import plots
from osnb.evidence import frames, selective
from osnb.plots.pictures import Images

PICTURE = (
    '<p role="status" aria-live="polite" style="line-height:1.4;margin:4px 0">{}</p>'
    # a picture that is too wide for its letters to be read is scrolled; it widens no cell
    '<div tabindex="0" style="overflow-x:auto;contain:inline-size">'
    '<img alt="{}" src="data:image/png;base64,{}" '
    'style="min-width:640px;max-width:100%;height:auto"></div>'
)
ACCEPTED = {
    "known": "known accepted and right (CCR)",
    "negative": "negative accepted (FPR)",
    "unknown": "unknown accepted (FPR)",
}
RESTS = 20  # a live figure takes at most a twentieth of the time
REACH = 6.0  # nats on either side of 0
RISK_STEP, COST_STEP, MOST_COST = 0.01, 0.1, 10.0
PRINTED = "as in the protocol"
CHOICES = (PRINTED, "known", "negative", "unknown", "out")


class Explorer(ipywidgets.VBox):
    """Controls above a sentence and a picture; setting the value of a control redraws.

    Args:
        show: the controls' values to (figure, sentence), the sentence in HTML.
        start: their first values; what `show` refuses of them is refused before there is a control.
        controls: makes them.

    Attributes:
        controls: what moves.
        figure: the static twin at the controls' values; the one before it is dropped.
        picture: `figure` as PNG.
        sentence: what the picture says, in words that a screen reader reads out at each change.
        shown: HTML widget with both; the picture's alternative text is `plots.describe` of it.
    """

    def __init__(self, show: Callable, start: Sequence, controls: Callable[[], list]) -> None:
        self.show, self.shown = show, ipywidgets.HTML()
        self.put(*show(*start))
        self.controls = controls()
        for control in self.controls:
            control.observe(lambda _: self.moved(), names="value")
        super().__init__([*self.controls, self.shown])

    def __repr__(self) -> str:
        """What stands in a notebook that is read without a kernel."""
        one = len(self.controls) == 1
        return f"{'a slider, which needs' if one else 'sliders, which need'} a running kernel"

    def moved(self) -> None:
        """Show what the controls' values are now."""
        self.put(*self.show(*(control.value for control in self.controls)))

    def put(self, figure: plots.Figure, sentence: str) -> None:
        """Show a figure and a sentence (HTML) in place of the ones before."""
        self.figure, self.sentence, self.picture = figure, sentence, figure._repr_png_()
        alt, png = html.escape(plots.describe(figure)), base64.b64encode(self.picture).decode()
        self.shown.value = PICTURE.format(sentence, alt, png)


def slider(value: float, low: float, high: float, step: float, name: str, form: str = ".2f"):
    """A FloatSlider whose steps meet `value`: a browser moves a value to a step, from min on.

    Args:
        value: where it starts.
        low: min is the first number from here on that whole steps lead to from value.
        high: max, at least.
        step: of an arrow key.
        name: shown before it.
        form: of the number shown after it.
    """
    least = value - step * max(0, math.floor(round((value - low) / step, 9)))
    least = low if math.isclose(least, low, abs_tol=1e-9) else least
    ends = {"min": least, "max": max(high, value), "step": step}
    return ipywidgets.FloatSlider(value=value, **ends, readout_format=form, **_named(name))


def _choice(value, options: Sequence, name: str) -> ipywidgets.SelectionSlider:
    """A slider over a list; no menu: JupyterLab takes the arrow keys away from those."""
    return ipywidgets.SelectionSlider(value=value, options=options, **_named(name))


def _named(name: str) -> dict:
    """A name that is not cut, and a width that a page leaves: a margin of 2 pixels on each side."""
    layout = ipywidgets.Layout(width="700px", max_width="calc(100% - 4px)")
    return {"description": name, "style": {"description_width": "initial"}, "layout": layout}


def threshold_slider(
    table: pd.DataFrame, *, score: str, threshold: float, images: Images | None = None
) -> Explorer:
    """A threshold to move, seen on the OSCR curve, over the scores, in counts and in images.

    The static twin, for readers without a kernel, is `plots.operating_point`.

    Args:
        table: the scores table of one run, with known samples and others.
        score: column of a rule that needs no label, such as max_softmax.
        threshold: where the slider starts, in the unit of the score.
        images: of the samples, as for the twin; None for none.

    Raises:
        ValueError: a column or a role is missing, a score is not finite, or the images do not
            fit the rows.
    """

    def show(at: float) -> tuple[plots.Figure, str]:
        counts = frames.operating_counts(table, score=score, threshold=at)
        rates = (f"{ACCEPTED[c.role]}: {c.rate:.3f} of {c.samples}" for c in counts.itertuples())
        figure = plots.operating_point(table, score=score, threshold=at, images=images)
        return figure, "; ".join(rates)

    def controls() -> list:
        low, high = float(table[score].min()), float(table[score].max())
        step = (high - low) / 100 or 1.0
        # the ends lie around all scores, so that everything can be accepted, and rejected
        return [slider(threshold, low - step, high + step, step, "threshold", ".3f")]

    return Explorer(show, [threshold], controls)


def epoch_slider(outputs: pd.DataFrame, *, epoch: int) -> Explorer:
    """An epoch to move, and where the features of test images lie after it, to its own scale.

    The static twin, for readers without a kernel, is `plots.feature_plane`.

    Args:
        outputs: one row per test image and epoch, as for the twin.
        epoch: where the slider starts.

    Raises:
        ValueError: a column or that epoch is missing.
    """
    return Explorer(
        lambda at: (plots.feature_plane(outputs, epochs=[at]), f"after epoch {at}"),
        [epoch],
        lambda: [_choice(epoch, sorted({*outputs["epoch"].tolist()}), "epoch")],
    )


def risk_slider(samples: pd.DataFrame, *, risk: float) -> Explorer:
    """A risk to move, and what each method then accepts, by kind.

    The static twin, for readers without a kernel, is `plots.accepted_at_risk`.

    Args:
        samples: columns panel, printed, kind ("" where accepting is right) and score.
        risk: where the slider starts, a rate: the largest share of errors among accepted samples.

    Raises:
        ValueError: a column is missing, a score is NaN, or risk is no rate.
    """

    def show(at: float) -> tuple[plots.Figure, str]:
        accepted = selective.risk_table(samples, risk=at)
        accepted["right"] = accepted["accepted"].where(accepted["kind"] == selective.RIGHT, 0)
        lines = [f"errors among accepted samples: at most {at:.2f}"]
        for panel, part in accepted.groupby("panel", sort=False):
            sums = part.groupby("printed", sort=False)[["accepted", "right"]].sum()
            words = (f"{method} {n} ({right} right)" for method, n, right in sums.itertuples())
            lines.append(f"{panel}: accepted by " + ", ".join(words))
        return plots.accepted_at_risk(samples, risk=at), "<br>".join(lines)

    return Explorer(show, [risk], lambda: [slider(risk, 0.0, 1.0, RISK_STEP, "risk")])


def cost_sliders(samples: pd.DataFrame, *, wrong: float, rejection: float) -> Explorer:
    """The costs of a wrong acceptance and of a rejection to move, and each method's cheapest point.

    The static twin, for readers without a kernel, is `plots.least_cost` of
    `selective.cost_points`.

    Args:
        samples: columns panel, printed, kind ("" where accepting is right) and score.
        wrong: where the first slider starts, any unit, >= 0.
        rejection: where the second starts, same unit, >= 0.

    Raises:
        ValueError: a column is missing, a score is NaN, or a cost is not finite or below 0.
    """
    curves = selective.coverage_points(samples)

    def show(wrong: float, rejection: float) -> tuple[plots.Figure, str]:
        costs = {"wrong": wrong, "rejection": rejection}
        rows = selective.cost_points(curves, **costs)
        best = rows[rows["cheapest"]]
        best = best.loc[best.groupby("panel", sort=False)["cost"].idxmin()]
        words = (
            f"{x.panel}: cheapest is {x.printed}, cost {x.cost:.3f} a sample, accepts "
            f"{x.coverage:.3f} from {x.threshold:.3g} on, risk {x.risk:.3f}"
            for x in best.itertuples()
        )
        return plots.least_cost(rows, **costs), "<br>".join(words)

    def controls() -> list:
        names = {"cost of a wrong acceptance": wrong, "cost of a rejection": rejection}
        return [slider(cost, 0.0, MOST_COST, COST_STEP, name) for name, cost in names.items()]

    return Explorer(show, [wrong, rejection], controls)


def loss_explorer(logits: Sequence[float], *, background: float, weight: float) -> Explorer:
    """The logits of one negative sample to move, and the gradient that S, BG and EOS give it.

    The static twin, for readers without a kernel, is `plots.loss_gradients` of
    `plots.gradient_points`. There is a slider for each known class, then the background's.

    Args:
        logits: (K,) where the sliders of the known classes start, in nats, K >= 2.
        background: where the slider of BG's background logit starts.
        weight: price of a negative under BG and EOS, > 0.

    Raises:
        ValueError: fewer than two logits, one that is not finite, or a weight that is not > 0.
    """

    def show(*values: float) -> tuple[plots.Figure, str]:
        *known, last = values
        points = plots.gradient_points(known, background=last, weight=weight)
        sizes = points.groupby("loss", sort=False)["gradient"].apply(lambda g: g.abs().max())
        words = (f"{plots.LOSS_NAMES[name]}: {size:.3f}" for name, size in sizes.items())
        return plots.loss_gradients(points), "largest gradient: " + "; ".join(words)

    start = [*logits, background]
    names = [*(f"logit of class {c}" for c in range(1, len(start))), "logit of background"]
    places = zip(start, names, strict=True)
    return Explorer(
        show, start, lambda: [slider(z, -REACH, REACH, 0.25, name) for z, name in places]
    )


class ProtocolExplorer(Explorer):
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

    Attributes:
        superclass: SelectionSlider over wnids by name, in the order of the tree; choosing one
            shows its role in `role`.
        role: SelectionSlider; choosing a role moves the superclass and redraws, or says why that
            is refused.
        roles: the moves so far, role by wnid.
        classes: the protocol after them.
    """

    def __init__(
        self, classes: pd.DataFrame, tree: pd.DataFrame, *, move: Callable, count: Callable
    ) -> None:
        def show(roles: dict[str, str]) -> tuple[plots.Figure, str]:
            moved = move(classes, roles)
            counts = count(moved)
            words = (f"{row.role}: {row.classes} classes" for row in counts.itertuples())
            self.classes, self.roles = moved, roles
            return plots.role_tree(tree, moved, counts), "; ".join(words)

        named = zip(tree["name"], tree["wnid"], tree["parent"], strict=True)
        options = [(name, wnid) for name, wnid, parent in named if parent]
        first = classes["superclass_wnid"].iloc[0]
        parts = (first, options, "superclass"), (PRINTED, CHOICES, "role")
        super().__init__(show, [{}], lambda: [_choice(*part) for part in parts])

        self.superclass, self.role = self.controls
        self.chosen = first

    def moved(self) -> None:
        """Show the role of a superclass just chosen; else give it the role, or say why not."""
        wnid, role = self.superclass.value, self.role.value
        before = self.roles.get(wnid, PRINTED)
        if wnid != self.chosen:
            self.chosen = wnid
            self.role.value = before
        elif role != before:
            roles = {w: r for w, r in self.roles.items() if w != wnid}
            try:
                self.put(*self.show(roles if role == PRINTED else roles | {wnid: role}))
            except ValueError as refused:
                self.role.value = before
                self.put(self.figure, f"not moved: {refused}")


@contextmanager
def live(directory: Path, *, seconds: float = 1.0) -> Iterator[None]:
    """Show `plots.training` of a run in the output of this cell, drawn again after epochs.

    The run writes history.parquet whole after every epoch; a thread looks whether it changed.
    Drawing takes processor time from the training, so after each look it rests for `RESTS` times
    as long as that look took. An interrupt ends the run after its step, which is kept: the same
    cell goes on from there.

        with widgets.live(here.directory):
            history = train.fit(...)

    Args:
        directory: of the run, where `fit` keeps history.parquet, or a folder for each member of an
            ensemble; the newest one is shown.
        seconds: between two looks, at least.
    """
    from IPython.display import display

    folder, over, shown = Path(directory), threading.Event(), [None]
    place = display(display_id=True)

    def look() -> None:
        """Draw again if the file is another one than at the last look."""
        files = [folder / "history.parquet", *folder.glob("member*/history.parquet")]
        written = max(((f.stat().st_mtime_ns, f) for f in files if f.is_file()), default=None)
        if written != shown[0] and place:  # outside of Jupyter there is nothing to show it in
            shown[0] = written
            place.update(plots.training(pd.read_parquet(written[1])))

    def follow() -> None:
        pause = seconds
        while not over.wait(pause):
            began = time.thread_time()
            look()
            pause = max(seconds, RESTS * (time.thread_time() - began))

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    except KeyboardInterrupt as interrupt:
        print(f"interrupted: {interrupt}; run the cell again to go on from there")
        raise
    finally:
        over.set()
        thread.join()
        look()
