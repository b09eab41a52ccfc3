"""The slider moves point, sentence and picture together; the live figure follows its file."""

import gc
import html
import itertools
import queue
import re
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from osnb import metrics, plots, protocols
from osnb.base import workbook
from osnb.evidence import selective
from osnb.plots import widgets
from osnb.protocols import hierarchy

# test_browser_notebooks.py makes the same explorers of the same tables
EXPLORERS = ("threshold_slider", "epoch_slider", "risk_slider", "cost_sliders", "loss_explorer")
EXPLORERS += ("ProtocolExplorer",)


def scores():
    """The scores table of one run, scores rounded until many tie."""
    rng = np.random.default_rng(0)
    role = np.repeat(["known", "negative", "unknown"], [30, 20, 25])
    label = np.select([role == "known", role == "negative"], [rng.integers(0, 3, 75), -1], -2)
    score = (rng.random(75) / 2 + 0.5 * (label >= 0) * rng.random(75)).round(2)
    pred = np.where(rng.random(75) < 0.8, label.clip(0), 2)
    return pd.DataFrame({"role": role, "label": label, "pred": pred, "max_softmax": score})


table = pytest.fixture(scores, scope="module")


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures have no bytes: for tests that do not look at them, since drawing takes long."""
    monkeypatch.setattr(plots.Figure, "_repr_png_", lambda _: b"")


@pytest.fixture
def view(table):
    return widgets.threshold_slider(table, score="max_softmax", threshold=0.5)


def marks(figure):
    """[(FPR, CCR)] of the marked points."""
    return [line.get_xydata()[0].tolist() for line in figure.axes[0].lines[1::2]]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.41, 0.8])
def test_moving_the_slider_moves_the_marks_along_the_metrics_curve(table, view, threshold):
    view.controls[0].value = threshold
    known = table[table["role"] == "known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    for role, mark in zip(("negative", "unknown"), marks(view.figure), strict=True):
        other = table.loc[table["role"] == role, "max_softmax"].to_numpy()
        curve = np.array(metrics.oscr(known["max_softmax"].to_numpy(), correct, other)).T
        accepted = np.unique(np.r_[known["max_softmax"], other]) >= threshold
        assert mark == curve[accepted.sum()].tolist()


@pytest.mark.usefixtures("undrawn")
def test_the_sentence_says_the_rates_of_every_role(table, view):
    view.controls[0].value = 0.4
    unknown = table.loc[table["role"] == "unknown", "max_softmax"]
    assert f"unknown accepted (FPR): {(unknown >= 0.4).mean():.3f} of 25" in view.sentence
    assert view.sentence.startswith("known accepted and right (CCR): ")


@pytest.mark.usefixtures("undrawn")
def test_the_slider_is_described_and_reaches_from_accepting_all_to_rejecting_all(table, view):
    assert view.controls[0].description == "threshold"
    assert view.controls[0].readout
    assert view.controls[0].min <= table["max_softmax"].min()
    view.controls[0].value = view.controls[0].max
    assert marks(view.figure) == [[0, 0], [0, 0]]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("threshold", [-2.0, 0.0, 0.5, 0.777, 3.0])
def test_the_first_threshold_is_one_of_its_steps_so_that_a_browser_keeps_it(table, threshold):
    slider = widgets.threshold_slider(table, score="max_softmax", threshold=threshold).controls[0]
    steps = (threshold - slider.min) / slider.step
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert slider.min <= min(threshold, table["max_softmax"].min())
    assert slider.value == threshold


def test_a_figure_is_dropped_when_the_next_one_is_drawn(view):
    first = weakref.ref(view.figure)
    view.controls[0].value = 0.2
    gc.collect()
    assert first() is None


# Epochs


def features():
    """Features of six test images after epochs 1, 2 and 5."""
    rng = np.random.default_rng(0)
    role = ["known"] * 4 + ["unknown"] * 2
    frame = pd.DataFrame({"role": role, "class": list("aabbcc"), "x": rng.random(6)})
    frame["y"] = rng.random(6)
    return pd.concat([frame.assign(x=frame["x"] * epoch, epoch=epoch) for epoch in (1, 2, 5)])


outputs = pytest.fixture(features, scope="module")

BAD = {
    "got 75 rows": lambda t, o, s: widgets.threshold_slider(t, score="margin", threshold=0.5),
    r"got \[3\]": lambda t, o, s: widgets.epoch_slider(o, epoch=3),
    "rate in": lambda t, o, s: widgets.risk_slider(s, risk=1.5),
    "at least 0 as wrong": lambda t, o, s: widgets.cost_sliders(s, wrong=-1.0, rejection=1.0),
    "finite logits": lambda t, o, s: widgets.loss_explorer([np.nan, 2], background=0.0, weight=1),
}


@pytest.mark.parametrize("reason", BAD)
def test_what_the_picture_refuses_is_refused_before_there_is_a_control(reason, table, outputs):
    samples = pd.DataFrame({"panel": "all", "printed": "x", "kind": [""], "score": [0.5]})
    with pytest.raises(ValueError, match=reason):
        BAD[reason](table, outputs, samples)


# Roles


FOX, DOG, BIRD = "n02118333", "n02084071", "n01503061"


def protocol():
    """P1, the tree of its superclasses and one more, and the numbers of its classes."""
    classes = protocols.p1()
    wnids = {*classes["superclass_wnid"], BIRD}
    paths = {w: [(s, hierarchy.name(s)) for s in hierarchy.path(w)] for w in sorted(wnids)}
    sizes = pd.DataFrame(2, hierarchy.ILSVRC, ["train", "test"])
    tree = plots.reduced_tree(paths)
    return classes, tree, lambda kept: protocols.class_counts(kept, sizes)


def roles_explorer(classes, tree, count):
    return widgets.ProtocolExplorer(classes, tree, move=protocols.moved, count=count)


roles = pytest.fixture(protocol, scope="module")


def test_a_moved_superclass_moves_tree_and_counts_together(roles):
    classes, tree, count = roles
    view = roles_explorer(*roles)
    view.superclass.value = FOX
    view.role.value = "unknown"
    view.superclass.value = BIRD  # of another protocol, out here
    assert view.role.value == "as in the protocol"
    view.role.value = "negative"
    moved = protocols.moved(classes, {FOX: "unknown", BIRD: "negative"})
    pd.testing.assert_frame_equal(view.classes, moved)
    assert view.picture == plots.role_tree(tree, moved, count(moved))._repr_png_()
    assert view.sentence.startswith("known: 116 classes; negative: 115 classes")
    view.superclass.value = FOX
    assert view.role.value == "unknown"
    view.role.value = "as in the protocol"
    assert view.roles == {BIRD: "negative"}
    assert repr(view) == "sliders, which need a running kernel"


def test_a_move_that_leaves_no_protocol_is_taken_back_and_said(roles):
    view = roles_explorer(*roles)
    before = view.picture
    view.superclass.value = DOG
    view.role.value = "out"
    assert view.sentence.startswith("not moved: P1, moved needs at least 2 known classes")
    assert view.role.value == "as in the protocol"
    assert view.roles == {}
    assert view.picture == before
    pd.testing.assert_frame_equal(view.classes, roles[0])


# What all of them have


def pool(methods=("Baseline", "OE"), panel="all"):
    """Thirty samples of each method."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"panel": panel, "printed": np.resize(methods, 30 * len(methods))})
    frame["kind"] = rng.choice(["", "near", "wrong prediction"], len(frame))
    return frame.assign(score=rng.normal(frame["kind"] == "", 0.5))


samples = pytest.fixture(pool, scope="module")


def twins(table, outputs, samples):
    """By explorer: (itself, its static twin at values, values to move it to)."""
    points = selective.coverage_points(samples)
    at = {"score": "max_softmax"}
    return {
        "threshold_slider": (
            lambda: widgets.threshold_slider(table, **at, threshold=0.5),
            lambda x: plots.operating_point(table, **at, threshold=x),
            (0.6,),
        ),
        "epoch_slider": (
            lambda: widgets.epoch_slider(outputs, epoch=1),
            lambda x: plots.feature_plane(outputs, epochs=[x]),
            (5,),
        ),
        "risk_slider": (
            lambda: widgets.risk_slider(samples, risk=0.05),
            lambda x: plots.accepted_at_risk(samples, risk=x),
            (0.2,),
        ),
        "cost_sliders": (
            lambda: widgets.cost_sliders(samples, wrong=3.0, rejection=1.0),
            lambda x, y: plots.least_cost(
                selective.cost_points(points, wrong=x, rejection=y), wrong=x, rejection=y
            ),
            (0.5, 0.0),
        ),
        "loss_explorer": (
            lambda: widgets.loss_explorer([2.0, 0.0], background=0.0, weight=1.0),
            lambda x, y, z: plots.loss_gradients(
                plots.gradient_points([x, y], background=z, weight=1.0)
            ),
            (-4.0, 0.0, 1.5),
        ),
    }


@pytest.mark.parametrize("name", EXPLORERS[:-1])
def test_moving_a_control_shows_the_static_twin_and_another_sentence(name, table, outputs, samples):
    make, twin, values = twins(table, outputs, samples)[name]
    view = make()
    first = view.sentence
    for control, value in zip(view.controls, values, strict=True):
        control.value = value
    assert view.picture == twin(*values)._repr_png_()
    assert view.sentence != first
    assert repr(view).endswith("a running kernel")


def test_what_each_method_accepts_at_a_risk_is_read_out(samples):
    counts = selective.risk_table(samples, risk=0.4).groupby(["panel", "printed"])["accepted"].sum()
    said = widgets.risk_slider(samples, risk=0.4).sentence
    for (panel, method), accepted in counts.items():
        (line,) = (x for x in said.split("<br>") if x.startswith(f"{panel}: "))
        assert f" {method} {accepted} (" in line


def test_these_are_the_explorers_of_the_notebooks():
    text = "".join(path.read_text() for path in (workbook.root() / "notebooks").glob("*.ipynb"))
    assert {*re.findall(r"widgets\.(\w+)\(", text)} == {*EXPLORERS, "live"}


@pytest.fixture(params=EXPLORERS)
def explorer(request, undrawn, table, outputs, samples, roles):
    if request.param == "ProtocolExplorer":
        return roles_explorer(*roles)
    return twins(table, outputs, samples)[request.param][0]()


def test_every_control_comes_before_the_picture_has_a_name_and_fits_a_narrow_page(explorer):
    *controls, shown = explorer.children
    assert shown is explorer.shown
    for control in controls:
        assert control.description
        assert control.layout.max_width == "calc(100% - 4px)"
        assert control.style.description_width == "initial"  # no name is cut
        assert control.tabbable is not False
    assert "max-width:100%" in shown.value


def test_every_picture_has_its_description_as_alternative_text(explorer):
    alt = html.escape(plots.describe(explorer.figure))
    assert explorer.shown.value.count(f'alt="{alt}"') == 1
    assert explorer.shown.value.count("data:image/png;base64,") == 1
    assert explorer.shown.value.count('aria-live="polite"') == 1
    assert explorer.sentence in explorer.shown.value
    assert explorer.sentence


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("start", [0.0, 0.3, 2.4, 9.95, 12.0])
def test_a_cost_starts_at_one_of_its_steps(start):
    samples = pd.DataFrame({"panel": "all", "printed": "x", "kind": ["", "near"], "score": [1, 0]})
    view = widgets.cost_sliders(samples, wrong=start, rejection=1.0)
    cost = view.controls[0]
    steps = (start - cost.min) / cost.step
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert cost.value == start
    cost.value = cost.min  # never a cost below 0


# A run while it trains


class Shown:
    """Stands in for a display: remembers what it was asked to show, and when."""

    def __init__(self):
        self.figures, self.changed = [], threading.Event()

    def update(self, figure):
        self.figures.append(figure)
        self.changed.set()


@pytest.fixture
def shown(monkeypatch):
    import IPython.display

    display = Shown()
    monkeypatch.setattr(IPython.display, "display", lambda **_: display)
    return display


def write(file, epochs):
    rows = {"epoch": range(1, epochs + 1), "loss": np.linspace(2, 1, epochs)}
    with workbook.writing(file) as aside:
        pd.DataFrame(rows).to_parquet(aside)


def test_the_live_figure_follows_the_history_while_it_grows_and_ends_with_all_of_it(
    tmp_path, shown, monkeypatch
):
    monkeypatch.setattr(widgets, "RESTS", 0)
    threads = {*threading.enumerate()}
    with widgets.live(tmp_path, seconds=0.01):
        for epochs in (1, 2):
            shown.changed.clear()
            write(tmp_path / "history.parquet", epochs)
            assert shown.changed.wait(600)
        write(tmp_path / "history.parquet", 5)
    lengths = [len(figure.axes[0].lines[0].get_xdata()) for figure in shown.figures]
    assert lengths[-1] == 5
    assert lengths == sorted(set(lengths))  # drawn only where the file changed
    assert {*threading.enumerate()} <= threads


def test_a_figure_that_takes_long_to_draw_is_drawn_seldom(tmp_path, shown, monkeypatch):
    pauses = queue.SimpleQueue()

    class Pausing(threading.Event):
        def wait(self, pause):
            pauses.put(pause)
            return super().wait(pause)

    parts = SimpleNamespace(Event=Pausing, Thread=threading.Thread)
    monkeypatch.setattr(widgets, "threading", parts)
    monkeypatch.setattr(widgets.time, "thread_time", itertools.count(0, 1000).__next__)
    write(tmp_path / "history.parquet", 1)
    with widgets.live(tmp_path, seconds=0.01):
        waited = [pauses.get(timeout=600) for _ in range(2)]
        write(tmp_path / "history.parquet", 2)  # while it rests for hours
    assert waited == [0.01, widgets.RESTS * 1000]
    lengths = [len(figure.axes[0].lines[0].get_xdata()) for figure in shown.figures]
    assert lengths == [1, 2]  # the end is always shown


def test_an_interrupt_is_told_and_passed_on_and_the_thread_ends(tmp_path, shown, capsys):
    threads = {*threading.enumerate()}

    def stopped():
        with widgets.live(tmp_path, seconds=0.01):
            raise KeyboardInterrupt("kept after step 3 of epoch 2")

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "kept after step 3 of epoch 2; run the cell again" in capsys.readouterr().out
    assert {*threading.enumerate()} <= threads
    assert shown.figures == []


def test_a_run_without_an_epoch_yet_shows_nothing(tmp_path, shown):
    with widgets.live(tmp_path, seconds=0.01):
        pass
    assert shown.figures == []
