"""Figures of the unified benchmark: nothing is clipped, nothing is lost."""

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from test_plots import svg, visible_texts

from osnb import hierarchy, plots
from osnb.protocols import PROTOCOLS

TASKS = pd.DataFrame(
    [
        ("misclassification detection", "known, right", "accept"),
        ("misclassification detection", "known, wrong", "reject"),
        ("misclassification detection", "near", ""),
        ("unknown detection", "known, right", "accept"),
        ("unknown detection", "known, wrong", "reject"),
        ("unknown detection", "near", "reject"),
    ],
    columns=["task", "kind", "answer"],
)
IMAGES = np.random.default_rng(0).integers(0, 255, (3, 3, 16, 16), dtype=np.uint8)
VERSIONS = {"drawn, 16": IMAGES, "FIX, 8": IMAGES[:, :, ::2, ::2]}
NAMES = ["albatross", "centipede", "wooden spoon"]
FIGURES = {
    "figure_1": lambda: plots.task_sketch(TASKS, IMAGES),
    "figure_2": lambda: plots.resize_sheet(VERSIONS, NAMES),
}


@pytest.fixture(scope="module", params=FIGURES)
def figure(request):
    drawn = FIGURES[request.param]()
    drawn.name = request.param
    return drawn


def test_no_text_is_clipped_and_none_lies_on_another(figure):
    width, height = figure.bbox.size
    texts = visible_texts(figure)
    assert texts
    for text, box in texts:
        assert 0 <= box.x0 <= box.x1 <= width, text
        assert 0 <= box.y0 <= box.y1 <= height, text
    for (one, a), (two, b) in itertools.combinations(texts, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, two)


def test_a_figure_fits_a_page(figure):
    assert figure.get_figwidth() <= 10
    assert len(figure._repr_png_()) < 200_000


def test_two_drawings_give_the_same_bytes_whatever_the_readers_settings(figure):
    with mpl.rc_context({"font.size": 20, "axes.grid": True, "svg.hashsalt": None}):
        assert svg(FIGURES[figure.name]()) == svg(figure)


def test_each_answer_stands_in_the_field_of_its_task_and_kind():
    ax = plots.task_sketch(TASKS, IMAGES).axes[-1]
    kinds, tasks = (list(dict.fromkeys(TASKS[name])) for name in ("kind", "task"))
    assert [label.get_text() for label in ax.get_yticklabels()] == tasks
    said = {text.get_position(): text.get_text() for text in ax.texts}
    for task, kind, answer in TASKS.to_numpy():
        assert said[kinds.index(kind) + 0.5, tasks.index(task) + 0.5] == answer
    assert len(ax.patches) == len(TASKS)


def test_pictures_stand_in_the_order_of_kinds_and_of_versions():
    sketch = plots.task_sketch(TASKS, IMAGES).axes
    sheet = plots.resize_sheet(VERSIONS, NAMES).axes
    for drawn, images in ((sketch[:3], IMAGES), (sheet[3:], VERSIONS["FIX, 8"])):
        for ax, image in zip(drawn, images, strict=True):
            shown = ax.get_images()[0].get_array()
            np.testing.assert_array_equal(shown, image.transpose(1, 2, 0))
    assert [ax.get_title() for ax in sheet] == NAMES + [""] * 3
    assert [sheet[i].get_ylabel() for i in (0, 3)] == list(VERSIONS)


# Numbers


def test_roughness_is_the_mean_step_to_the_neighbours_read_slowly():
    def slow(image):
        steps = []
        for c, y, x in itertools.product(range(3), range(5), range(5)):
            for dy, dx in ((0, 1), (1, 0)):
                if y + dy < 5 and x + dx < 5:
                    steps.append(abs(int(image[c, y, x]) - int(image[c, y + dy, x + dx])))
        return sum(steps) / len(steps)

    images = IMAGES[:, :, :5, :5]
    assert plots.roughness(images) == pytest.approx([slow(image) for image in images])
    assert plots.roughness(np.full((2, 3, 4, 4), 200, np.uint8)).tolist() == [0, 0]


@pytest.mark.parametrize("least", [1, 3, 12, 500])
def test_a_class_is_gathered_at_the_lowest_node_above_it_with_enough_classes(least):
    wnids = PROTOCOLS["mini_kim"]()["wnid"]
    paths = {w: [(n, hierarchy.name(n)) for n in hierarchy.path(w)] for w in wnids}
    found = plots.gathered(paths, least=least)
    for wnid in wnids:
        above = hierarchy.path(wnid)[:-1]
        enough = [n for n in above if sum(n in hierarchy.path(w)[:-1] for w in wnids) >= least]
        assert [n for n, _ in found[wnid]] == list(above[: max(len(enough), 1)])
    spread = {path[-1][0] for path in found.values()}
    assert len(spread) == 1 if least == 500 else len(spread) > 1
    tree = plots.reduced_tree({path[-1][0]: path for path in found.values()})
    assert spread <= set(tree["wnid"])


def test_inputs_are_left_as_they_were():
    tasks, images = TASKS.copy(), IMAGES.copy()
    plots.task_sketch(TASKS, IMAGES)
    plots.resize_sheet(VERSIONS, NAMES)
    pd.testing.assert_frame_equal(TASKS, tasks)
    np.testing.assert_array_equal(IMAGES, images)


def test_bad_input_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="columns task, kind, answer"):
        plots.task_sketch(TASKS.drop(columns="kind"), IMAGES)
    with pytest.raises(ValueError, match=r"accept, reject or nothing .* got perhaps"):
        plots.task_sketch(TASKS.replace("reject", "perhaps"), IMAGES)
    with pytest.raises(ValueError, match=r"need \(3, 3, S, S\) uint8; got \(2, 3, 16, 16\)"):
        plots.task_sketch(TASKS, IMAGES[:2])
    with pytest.raises(ValueError, match="of float64"):
        plots.resize_sheet({"a": IMAGES.astype(float)}, NAMES)
    with pytest.raises(ValueError, match="at least one version"):
        plots.resize_sheet({}, NAMES)
    with pytest.raises(ValueError, match="at least 1 class; got 0"):
        plots.gathered({}, least=0)
