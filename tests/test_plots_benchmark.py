"""Figures of the unified benchmark: nothing is clipped, nothing is lost."""

import itertools

import numpy as np
import pandas as pd
import pytest

from osnb import plots
from osnb.protocols import PROTOCOLS, hierarchy

SCALE = pd.DataFrame({"name": ["car", "cat", "lion"], "kind": ["far", "near", "right"]})
SCALE["prediction"] = ["lion", "tiger", "lion"]
PATHS = {path[-1]: [(c, f"name of {c}") for c in path] for path in ("r", "ra", "rab", "rac", "rd")}
IMAGES = np.random.default_rng(0).integers(0, 255, (3, 3, 16, 16), dtype=np.uint8)
VERSIONS = {"drawn, 16": IMAGES, "FIX, 8": IMAGES[:, :, ::2, ::2]}
NAMES = ["albatross", "centipede", "wooden spoon"]


def versions():
    shape = {"columns": 3, "side": 1.5, "rows": list(VERSIONS), "titles": NAMES}
    return plots.contact_sheet([x for images in VERSIONS.values() for x in images], **shape)


FIGURES = {"figure_1": lambda: plots.confidence_scale(SCALE, IMAGES), "figure_2": versions}


def test_a_scale_says_of_each_picture_what_it_is_what_it_is_taken_for_and_whence():
    figure = plots.confidence_scale(SCALE, IMAGES)
    assert [ax.get_title() for ax in figure.axes] == ["car\n→ lion", "cat\n→ tiger", "lion\n→ lion"]
    assert figure.axes[1].get_xlabel() == "near\nnear-OoD"
    (line,) = figure.findobj(lambda x: x.get_gid() == "threshold")
    assert line.get_xdata()[0] == pytest.approx(2 / 3)  # left of the one right prediction


@pytest.mark.parametrize("kinds", [["near", "far", "right"], ["far", "near", "nearer"]])
def test_a_scale_refuses_another_kind_and_another_order(kinds):
    with pytest.raises(ValueError, match=f"far, near, wrong, right, in this order; got {kinds[0]}"):
        plots.confidence_scale(SCALE.assign(kind=kinds), IMAGES)


def test_a_marked_tree_names_what_is_asked_for_and_leaves_the_rest_without_a_mark():
    tree = plots.marked_tree(PATHS, {"b": "x", "c": "y", "d": "x"}, panel="p").set_index("wnid")
    assert tree["mark"].to_dict() == {"r": "", "a": "", "b": "x", "c": "y", "d": "x"}
    assert tree.loc[["a", "b"], "name"].tolist() == ["name of a", "name of b b"]
    assert tree.loc["b", "parent"] == "a"
    figure = plots.marked_trees(tree.reset_index())
    marked = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[0].lines}
    order = list(tree.index)
    assert marked["x"] == [order.index("b"), order.index("d")]
    assert marked["y"] == [order.index("c")]
    assert figure.axes[0].get_xlim()[0] < -0.1  # a marker at the root, at 0, is whole


def test_pictures_stand_in_the_order_of_kinds_and_of_versions():
    sketch = plots.confidence_scale(SCALE, IMAGES).axes
    sheet = versions().axes
    for drawn, images in ((sketch, IMAGES), (sheet[3:], VERSIONS["FIX, 8"])):
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
    wnids = PROTOCOLS.bind("quickdraw_kim", split=0)()["wnid"]
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
