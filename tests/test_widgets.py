"""The slider moves point, sentence and picture together; the live figure follows its file."""

import gc
import html
import threading
import weakref

import numpy as np
import pandas as pd
import pytest

from osnb import hierarchy, metrics, plots, protocols, repro, widgets


@pytest.fixture(scope="module")
def table():
    """The scores table of one run, scores rounded until many tie."""
    rng = np.random.default_rng(0)
    role = np.repeat(["known", "negative", "unknown"], [30, 20, 25])
    label = np.select([role == "known", role == "negative"], [rng.integers(0, 3, 75), -1], -2)
    score = (rng.random(75) / 2 + 0.5 * (label >= 0) * rng.random(75)).round(2)
    pred = np.where(rng.random(75) < 0.8, label.clip(0), 2)
    return pd.DataFrame({"role": role, "label": label, "pred": pred, "max_softmax": score})


@pytest.fixture
def view(table):
    return widgets.threshold_slider(table, score="max_softmax", threshold=0.5)


def marks(figure):
    """[(FPR, CCR)] of the marked points."""
    return [line.get_xydata()[0].tolist() for line in figure.axes[0].lines[1::2]]


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.41, 0.8])
def test_moving_the_slider_moves_the_marks_along_the_metrics_curve(table, view, threshold):
    view.slider.value = threshold
    known = table[table["role"] == "known"]
    correct = (known["pred"] == known["label"]).to_numpy()
    for role, mark in zip(("negative", "unknown"), marks(view.figure), strict=True):
        other = table.loc[table["role"] == role, "max_softmax"].to_numpy()
        curve = np.array(metrics.oscr(known["max_softmax"].to_numpy(), correct, other)).T
        accepted = np.unique(np.r_[known["max_softmax"], other]) >= threshold
        assert mark == curve[accepted.sum()].tolist()


def test_each_threshold_has_its_own_picture_and_sentence(view):
    seen = [(view.picture, view.sentence)]
    for threshold in (0.3, 0.7):
        view.slider.value = threshold
        seen.append((view.picture, view.sentence))
    assert len(set(seen)) == 3
    assert all(picture.startswith(b"\x89PNG") for picture, _ in seen)


def test_the_picture_is_the_static_twin(table, view):
    view.slider.value = 0.6
    twin = plots.operating_point(table, score="max_softmax", threshold=0.6)
    assert view.picture == twin._repr_png_()


def test_the_sentence_says_the_rates_of_every_role(table, view):
    view.slider.value = 0.4
    unknown = table.loc[table["role"] == "unknown", "max_softmax"]
    assert f"unknown accepted (FPR): {(unknown >= 0.4).mean():.3f} of 25" in view.sentence
    assert view.sentence.startswith("known accepted and right (CCR): ")


def test_the_slider_is_described_and_reaches_from_accepting_all_to_rejecting_all(table, view):
    assert view.slider.description == "threshold"
    assert view.slider.readout
    assert view.slider.min <= table["max_softmax"].min()
    view.slider.value = view.slider.max
    assert marks(view.figure) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("threshold", [-2.0, 0.0, 0.5, 0.777, 3.0])
def test_the_first_threshold_is_one_of_its_steps_so_that_a_browser_keeps_it(table, threshold):
    slider = widgets.threshold_slider(table, score="max_softmax", threshold=threshold).slider
    steps = (threshold - slider.min) / slider.step
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert slider.min <= min(threshold, table["max_softmax"].min())
    assert slider.value == threshold


def test_a_figure_is_dropped_when_the_next_one_is_drawn(view):
    first = weakref.ref(view.figure)
    view.slider.value = 0.2
    gc.collect()
    assert first() is None


def test_its_text_form_is_a_sentence_for_readers_without_a_kernel(view):
    assert repr(view) == "a slider, which needs a running kernel"


def test_a_missing_column_is_named(table):
    with pytest.raises(ValueError, match="margin; got 75 rows with role, label"):
        widgets.threshold_slider(table, score="margin", threshold=0.5)


# Epochs


@pytest.fixture
def outputs():
    """Features of six test images after epochs 1, 2 and 5."""
    rng = np.random.default_rng(0)
    role = ["known"] * 4 + ["unknown"] * 2
    frame = pd.DataFrame({"role": role, "class": list("aabbcc"), "x": rng.random(6)})
    frame["y"] = rng.random(6)
    return pd.concat([frame.assign(x=frame["x"] * epoch, epoch=epoch) for epoch in (1, 2, 5)])


def test_moving_the_epoch_shows_its_static_twin(outputs):
    view = widgets.epoch_slider(outputs, epoch=1)
    assert view.slider.options == (1, 2, 5)
    for epoch in (5, 2):
        view.slider.value = epoch
        assert view.picture == plots.feature_plane(outputs, epochs=[epoch])._repr_png_()
    assert repr(view) == "a slider, which needs a running kernel"


def test_an_epoch_that_is_not_there_is_named(outputs):
    with pytest.raises(ValueError, match=r"got \[3\]"):
        widgets.epoch_slider(outputs, epoch=3)


# Risk


@pytest.mark.parametrize("risk", [0.0, 0.05, 0.333])
def test_moving_the_risk_shows_its_static_twin(risk):
    rng = np.random.default_rng(0)
    kind = rng.choice(["", "near", "wrong prediction"], 60)
    samples = pd.DataFrame({"panel": "all", "method": "Baseline", "kind": kind})
    samples["score"] = rng.normal(kind == "", 0.5)
    view = widgets.risk_slider(samples, risk=risk)
    assert view.slider.value == risk
    for at in (risk, 0.2, 1.0):
        view.slider.value = at
        twin = plots.accepted_at_risk(samples, risk=view.slider.value)
        assert view.picture == twin._repr_png_()
    assert repr(view) == "a slider, which needs a running kernel"


def test_a_risk_that_is_no_rate_is_refused():
    samples = pd.DataFrame({"panel": "all", "method": "x", "kind": [""], "score": [0.5]})
    with pytest.raises(ValueError, match="rate in"):
        widgets.risk_slider(samples, risk=1.5)


# Costs


def test_moving_a_cost_shows_its_static_twin_and_names_the_cheapest():
    rng = np.random.default_rng(0)
    kind = rng.choice(["", "near"], 60)
    samples = pd.DataFrame({"panel": "all", "method": np.resize(["Baseline", "OE"], 60)})
    samples = samples.assign(kind=kind, score=rng.normal(kind == "", 0.5))
    view = widgets.cost_sliders(samples, wrong=3.0, rejection=1.0)
    points = plots.coverage_points(samples)
    for wrong, rejection in ((3.0, 1.0), (0.5, 1.0), (0.5, 0.0)):
        view.wrong.value, view.rejection.value = wrong, rejection
        costs = {"wrong": wrong, "rejection": rejection}
        assert view.picture == plots.least_cost(points, **costs)._repr_png_()
        best = plots.cost_table(points, **costs)
        assert f"cost {best['cost'].min():.3f} a sample" in view.sentence
    assert repr(view) == "sliders, which need a running kernel"


def test_a_cost_below_0_is_refused():
    samples = pd.DataFrame({"panel": "all", "method": "x", "kind": [""], "score": [0.5]})
    with pytest.raises(ValueError, match=r"at least 0 as wrong; got -1\.0"):
        widgets.cost_sliders(samples, wrong=-1.0, rejection=1.0)


# Losses


def test_moving_a_logit_shows_its_static_twin():
    view = widgets.loss_explorer([2.0, 0.0, -1.0], background=0.0, weight=1.0)
    assert len(view.sliders) == 4
    view.sliders[0].value, view.sliders[3].value = -4.0, 1.5
    points = plots.gradient_points([-4.0, 0.0, -1.0], background=1.5, weight=1.0)
    assert view.picture == plots.loss_gradients(points)._repr_png_()
    assert "S: 0.000" in view.sentence


def test_a_logit_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite logits"):
        widgets.loss_explorer([2.0, np.nan], background=0.0, weight=1.0)


# Roles


FOX, DOG, BIRD = "n02118333", "n02084071", "n01503061"


@pytest.fixture
def roles():
    classes = protocols.p1()
    wnids = {*classes["superclass_wnid"], BIRD}
    paths = {w: [(s, hierarchy.name(s)) for s in hierarchy.path(w)] for w in sorted(wnids)}
    sizes = pd.DataFrame(2, hierarchy.ILSVRC, ["train", "test"])
    tree = plots.reduced_tree(paths)
    return classes, tree, lambda kept: protocols.class_counts(kept, sizes)


def test_a_moved_superclass_moves_tree_and_counts_together(roles):
    classes, tree, count = roles
    view = widgets.protocol_explorer(classes, tree, move=protocols.moved, count=count)
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
    assert repr(view) == "two sliders, which need a running kernel"


def test_a_move_that_leaves_no_protocol_is_taken_back_and_said(roles):
    classes, tree, count = roles
    view = widgets.protocol_explorer(classes, tree, move=protocols.moved, count=count)
    before = view.picture
    view.superclass.value = DOG
    view.role.value = "out"
    assert view.sentence.startswith("not moved: P1, moved needs at least 2 known classes")
    assert view.role.value == "as in the protocol"
    assert view.roles == {}
    assert view.picture == before
    pd.testing.assert_frame_equal(view.classes, classes)


# What all of them have


@pytest.fixture(params=["threshold", "epoch", "risk", "cost", "loss", "roles"])
def explorer(request, table, outputs):
    samples = pd.DataFrame({"panel": "all", "method": "x", "kind": ["", "near"] * 5})
    samples = samples.assign(score=np.linspace(0, 1, 10))
    make = {
        "threshold": lambda: widgets.threshold_slider(table, score="max_softmax", threshold=0.5),
        "epoch": lambda: widgets.epoch_slider(outputs, epoch=1),
        "risk": lambda: widgets.risk_slider(samples, risk=0.1),
        "cost": lambda: widgets.cost_sliders(samples, wrong=1.0, rejection=1.0),
        "loss": lambda: widgets.loss_explorer([1.0, 0.0], background=0.0, weight=1.0),
        "roles": lambda: widgets.protocol_explorer(
            *request.getfixturevalue("roles")[:2],
            move=protocols.moved,
            count=request.getfixturevalue("roles")[2],
        ),
    }
    return make[request.param]()


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
    assert shown_once(f'alt="{alt}"', explorer.shown.value)
    assert shown_once("data:image/png;base64,", explorer.shown.value)
    assert shown_once('aria-live="polite"', explorer.shown.value)
    assert explorer.sentence in explorer.shown.value
    assert explorer.sentence


def shown_once(text, where):
    return where.count(text) == 1


@pytest.mark.parametrize("start", [0.0, 0.3, 2.4, 9.95, 12.0])
def test_a_cost_starts_at_one_of_its_steps(start):
    samples = pd.DataFrame({"panel": "all", "method": "x", "kind": ["", "near"], "score": [1, 0]})
    view = widgets.cost_sliders(samples, wrong=start, rejection=1.0)
    steps = (start - view.wrong.min) / view.wrong.step
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert view.wrong.value == start
    view.wrong.value = view.wrong.min  # never a cost below 0


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
    with repro.writing(file) as aside:
        pd.DataFrame(rows).to_parquet(aside)


def test_the_live_figure_follows_the_history_while_it_grows_and_ends_with_all_of_it(
    tmp_path, shown
):
    threads = threading.active_count()
    with widgets.live(tmp_path, seconds=0.01):
        for epochs in (1, 2):
            shown.changed.clear()
            write(tmp_path / "history.parquet", epochs)
            assert shown.changed.wait(20)
        write(tmp_path / "history.parquet", 5)
    lengths = [len(figure.axes[0].lines[0].get_xdata()) for figure in shown.figures]
    assert lengths[-1] == 5
    assert lengths == sorted(set(lengths))  # drawn only where the file changed
    assert threading.active_count() == threads


def test_an_interrupt_is_told_and_passed_on_and_the_thread_ends(tmp_path, shown, capsys):
    threads = threading.active_count()

    def stopped():
        with widgets.live(tmp_path, seconds=0.01):
            raise KeyboardInterrupt("kept after step 3 of epoch 2")

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "kept after step 3 of epoch 2; run the cell again" in capsys.readouterr().out
    assert threading.active_count() == threads
    assert shown.figures == []


def test_a_run_without_an_epoch_yet_shows_nothing(tmp_path, shown):
    with widgets.live(tmp_path, seconds=0.01):
        pass
    assert shown.figures == []
