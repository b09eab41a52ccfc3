"""All figures at once: nothing is clipped or hidden, bytes repeat, words say what is shown."""

import importlib
import io
import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.text import Text

from osnb import metrics, plots
from osnb.evidence import across, frames, kim2021, selective
from osnb.evidence.build import Evidence
from osnb.plots.style import LENGTH, LOSSES, Figure, looks, plain

TOPICS = [
    *("palechor", "lessons", "correlation", "methods", "norms", "ood", "semantic", "splits"),
    *("benchmark", "cross", "tasks", "unified"),
]
FIGURES = {
    f"{topic}: {name}": draw
    for topic in TOPICS
    for name, draw in importlib.import_module(f"test_plots_{topic}").FIGURES.items()
}


def copies(value):
    """What a call is given, by value."""
    if isinstance(value, dict):
        return {key: copies(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [copies(each) for each in value]
    return value.copy() if isinstance(value, pd.DataFrame | np.ndarray) else value


def same(one, two):
    if isinstance(one, pd.DataFrame):
        return one.equals(two) and list(one) == list(two)
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else True


def watched(function):
    """The function, which must leave its arguments as they were."""

    def call(*args, **settings):
        before = copies([args, settings])
        result = function(*args, **settings)
        assert same([args, settings], before), function.__name__
        return result

    return call


@pytest.fixture(scope="module", params=FIGURES)
def figure(request):
    """Each figure of the room, drawn while all functions are watched."""
    with pytest.MonkeyPatch.context() as patch:
        for room, name in [(r, n) for r in (plots, frames, selective) for n in vars(r)]:
            value = getattr(room, name)
            if callable(value) and not isinstance(value, type):
                patch.setattr(room, name, watched(value))
        return FIGURES[request.param]()


def visible_texts(figure):
    """(text, its bounding box in pixels) of everything written that can be seen."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    beyond = {
        label
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in beyond
    ]


def test_no_text_is_clipped_or_lies_on_another(figure):
    width, height = figure.bbox.size
    texts = visible_texts(figure)
    for text, box in texts:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (one, a), (two, b) in itertools.combinations(texts, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, two)


def test_the_legend_names_every_label_once_and_stays_off_the_axes(figure):
    """Legends of single panels, where panels have encodings of their own, lie inside these."""
    labels = {text for ax in figure.axes for text in ax.get_legend_handles_labels()[1]}
    legends = [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]
    named = [[text.get_text() for text in legend.get_texts()] for legend in legends]
    assert all(len(words) == len(set(words)) for words in named)
    assert {word for words in named for word in words} == labels
    for legend, ax in itertools.product(figure.legends, figure.axes):
        assert not legend.get_window_extent().overlaps(ax.get_window_extent())


def test_a_figure_fits_a_page_and_its_description_says_its_labels_and_legend(figure):
    assert figure.get_figwidth() <= 10
    data, metadata = figure._repr_mimebundle_(include=None, exclude=None)
    assert len(data["image/png"]) < 270_000  # of base64: 200 kB
    alt = metadata["image/png"]["alt"]
    words = [x for ax in figure.axes for x in (ax.get_xlabel(), ax.get_ylabel())]
    words += [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert all(plain(text) in alt for text in words)
    assert alt == plots.describe(figure)
    assert f"{len(figure.axes)} panel" in alt


def test_a_figure_is_drawn_in_the_house_style(figure):
    """`laid_out` leaves no engine behind; a plain figure has none, or that of a reader."""
    assert isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine)


@pytest.mark.parametrize("name", {name.partition(":")[0]: name for name in FIGURES}.values())
def test_two_drawings_give_the_same_bytes_whatever_the_readers_settings(name):
    """One of each topic: the house style and how a figure is saved are the same for all."""
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "svg.hashsalt": None}):
        drawn = svg(FIGURES[name]())
    assert drawn == svg(FIGURES[name]())
    assert not {b"dc:date", b"<text", mpl.__version__.encode()} & set(drawn.split())
    assert b"<title>Figure, " in drawn


def svg(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def test_drawing_leaves_settings_and_pyplot_alone():
    script = (
        "import matplotlib as mpl; before = mpl.rcParams.copy()\n"
        "import sys, numpy as np; from osnb import plots\n"
        "line = np.array([0., 1]), np.array([0., 1])\n"
        "plots.oscr({'a': line, 'b': line})._repr_png_()\n"
        "assert not {'matplotlib.pyplot', 'torch', 'seaborn'} & set(sys.modules)\n"
        "assert dict.items(before) == dict.items(mpl.rcParams)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_description_counts_what_is_drawn_and_drops_titles_where_it_grows_long():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([1, 2], [3, 4])
    left.plot([1, 2], [4, 4])
    right.bar([1, 2, 3], [1, 2, 3])
    left.set(title="$s_y$ of {all}\nimages")
    assert plots.describe(figure) == "Figure, 2 panels: 2 lines, 3 bars; s_y of all images."
    figure = Figure()
    ax = figure.subplots()
    ax.plot([1, 2], [3, 4], "o", linestyle="None")
    ax.plot([1], [3], "o", linestyle="None")
    assert plots.describe(figure) == "Figure, 1 panel: 3 points."
    ax.plot([1, 2], [3, 4])
    ax.axhline(0)
    ax.axvline(1)
    assert plots.describe(figure) == "Figure, 1 panel: 1 line, 3 points."
    boxes = FIGURES["palechor: distance_boxes"]()
    assert f": {len(boxes.axes[0].get_xticks())} boxes; " in plots.describe(boxes)
    figure = Figure()
    for k, ax in enumerate(figure.subplots(4, 5).flat):
        ax.set(title=f"a title of panel {k}", xlabel="time" if k == 3 else "")
    words = plots.describe(figure)
    assert len(words) <= LENGTH
    assert "time" in words
    assert "panel 0" in words
    assert "panel 19" not in words


@pytest.mark.parametrize(("styles", "number"), [(None, 24), (LOSSES, 12)])
def test_names_without_a_style_have_looks_of_their_own(styles, number):
    found = looks([f"n{i}" for i in range(number)], styles).values()
    assert len({(look["color"], look["linestyle"]) for look in found}) == number


IMAGES = np.zeros((4, 3, 8, 8), np.uint8)
ONE = pd.DataFrame({"x": [1.0]})
KNOWN = pd.DataFrame({"role": ["known"], "label": 0, "pred": 0, "sample": "a", "class": "a"})
KNOWN = KNOWN.assign(s=0.5, benchmark="p1", method="softmax", seed=0)
AT = {"score": "s", "threshold": 0}
REFUSED = [
    (lambda: frames.oscr_points(ONE, score="s"), "columns benchmark, method, .* got 1 rows"),
    (lambda: frames.oscr_points(KNOWN, score="s"), "need negative or unknown samples"),
    (lambda: frames.histograms(KNOWN, "s", "role", bins=3, edges="wide"), "'own'; got 'wide'"),
    (lambda: frames.operating_counts(KNOWN.assign(s=np.nan), **AT), "1 of 1 are not"),
    (lambda: plots.operating_point(KNOWN, **AT), "known samples and others; got known"),
    (lambda: plots.confidence_history(ONE), "gamma_plus"),
    (lambda: plots.oscr({"exact": metrics.oscr}), "two curves; got exact"),
    (lambda: plots.gradient_points([1.0], background=0, weight=1), "two or more"),
    (lambda: plots.gradient_points([1.0, np.inf], background=0, weight=1), "finite"),
    (lambda: plots.gradient_points([1.0, 0.0], background=0, weight=0), "weight above 0"),
    (lambda: plots.class_tree(ONE, ONE), "protocol, role"),
    (lambda: plots.contact_sheet(IMAGES / 2, columns=2), "uint8; got .* float64"),
    (lambda: plots.contact_sheet(IMAGES[:, :2], columns=2), r"got 4: \(2, 8, 8\)"),
    (lambda: plots.contact_sheet(IMAGES, columns=2, rows=["a"]), "need 2 rows, or none; got 1"),
    (lambda: plots.class_sheet(ONE, IMAGES), "row, bin, closest, name, value"),
    (lambda: plots.confidence_scale(ONE, IMAGES), "name, kind, prediction"),
    (lambda: plots.marked_trees(ONE), "panel, mark, wnid"),
    (lambda: plots.gathered({}, least=0), "at least 1 class; got 0"),
    (lambda: plots.reduced_tree({}), "one root; got 0"),
    (lambda: plots.reduced_tree({"a": [("a", "")], "b": [("b", "")]}), "got 2: a, b"),
    (lambda: plots.reduced_tree({"b": [("a", ""), ("c", "")]}), "b's does not"),
    (lambda: across.correlations(Evidence(ONE, {}), "panel"), "missing.*panel.*auroc"),
    (lambda: plots.accuracy_auroc(ONE, ONE[:0], empty={}, about=""), "at least one row"),
    (lambda: plots.method_tasks(ONE, measure="AUROC"), "printed, benchmark, task, value"),
    (lambda: across.contrasts(Evidence(ONE, {}), [("", "", "", "near")]), "above or within; got"),
    (lambda: plots.contrasts(ONE), "finding, place, number"),
    (lambda: plots.method_gains(ONE), "place, printed, kind"),
    (lambda: plots.feature_norms(ONE, ONE), "norm_of_classes"),
    (lambda: plots.feature_plane(ONE, epochs=[1]), "epoch, role, class, x, y"),
    (lambda: plots.rules_by_set(ONE), "printed, source, near, auroc"),
    (lambda: plots.rules_by_set(ONE[:0]), "got 0 rows"),
    (lambda: frames.class_points(ONE, score="s"), "group, class, s"),
    (lambda: plots.class_likeness(ONE), "steps"),
    (lambda: frames.number_points(ONE, score="s", numbers=[1], draws=1, seed=0), "pred, class, s"),
    (lambda: plots.class_numbers(ONE), "expected_sd"),
    (lambda: frames.histograms(ONE, "x", "bin", bins=3), "columns bin, x"),
    (lambda: plots.mean_softmax(ONE), "printed, kind, class, known"),
    (lambda: kim2021.mean_softmax(ONE, ONE, at_most=3), "class, source, kind"),
    (lambda: selective.risk_points(ONE), "kind, score"),
    (lambda: selective.risk_table(ONE, risk=0.1), "kind, score"),
    (lambda: plots.risk_curves(ONE, risk=0.1), "coverage, risk"),
    (lambda: plots.stacked_errors(ONE, value="part", label=""), "part; got"),
    (lambda: plots.improvements(ONE, about=""), "side, number, low, high"),
    (lambda: selective.cost_points(ONE, wrong=1, rejection=1), "threshold, coverage, risk"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED)
def test_bad_input_is_refused_with_the_reason(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
