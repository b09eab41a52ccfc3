"""What explorers draw: costs against brute force, gradients against torch, images that fit."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from osnb import losses, plots, protocols
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.evidence import frames, selective, tables
from osnb.evidence.selective import cost_points as costs
from osnb.protocols import hierarchy

# Costs


def pool(samples=40, methods=("Baseline", "OE"), panels=("all",), digits=1):
    """Samples of pools; scores rounded until many tie."""
    rng = np.random.default_rng(3)
    parts = []
    for panel, method in itertools.product(panels, methods):
        kind = rng.choice(["", "near", "wrong prediction"], samples)
        score = rng.normal(kind == "", 0.6).round(digits)
        parts.append(
            pd.DataFrame({"panel": panel, "printed": method, "kind": kind, "score": score})
        )
    return pd.concat(parts, ignore_index=True)


def cheapest(points, **prices):
    return costs(points, **prices).query("cheapest")


def by_hand(rows, threshold, wrong, rejection):
    """Mean over the samples of what each one costs."""
    return np.mean(
        [
            rejection if score < threshold else wrong * (kind != "")
            for kind, score in zip(rows["kind"], rows["score"], strict=True)
        ]
    )


COSTS = [(1.0, 1.0), (5.0, 1.0), (1.0, 5.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (2.5, 0.3)]


@pytest.mark.parametrize(("wrong", "rejection"), COSTS)
def test_the_cheapest_threshold_is_that_of_trying_all(wrong, rejection):
    samples = pool()
    best = cheapest(selective.coverage_points(samples), wrong=wrong, rejection=rejection)
    assert list(best["printed"]) == ["Baseline", "OE"]
    for row in best.itertuples():
        rows = samples[samples["printed"] == row.printed]
        tried = [*rows["score"], np.inf]
        least = min(by_hand(rows, at, wrong, rejection) for at in tried)
        assert row.cost == pytest.approx(least, abs=1e-12)
        assert by_hand(rows, row.threshold, wrong, rejection) == pytest.approx(least, abs=1e-12)
        assert row.coverage == (rows["score"] >= row.threshold).mean()


def test_every_operating_point_costs_what_its_samples_cost():
    samples = pool(methods=("x",))
    points = costs(selective.coverage_points(samples), wrong=3, rejection=2)
    assert points["threshold"].is_monotonic_decreasing
    assert len(points) == samples["score"].nunique() + 1
    for row in points.itertuples():
        assert row.cost == pytest.approx(by_hand(samples, row.threshold, 3, 2), abs=1e-12)


def test_free_errors_accept_all_free_rejections_only_what_is_never_wrong_and_scale_is_nothing():
    points = selective.coverage_points(pool(methods=("x",)))
    assert cheapest(points, wrong=0, rejection=1)["coverage"].item() == 1
    assert cheapest(points, wrong=1, rejection=0)["cost"].item() == 0
    assert cheapest(points, wrong=0, rejection=0)["coverage"].item() == 1  # of equal ones
    once, thrice = (cheapest(points, wrong=2 * k, rejection=k) for k in (1, 3))
    assert once["threshold"].item() == thrice["threshold"].item()


def test_a_dearer_rejection_never_accepts_less():
    points = selective.coverage_points(pool(methods=("x",)))
    prices = np.linspace(0, 4, 17)
    accepted = [cheapest(points, wrong=2, rejection=c)["coverage"].item() for c in prices]
    assert accepted == sorted(accepted)


# Gradients


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("logits", [[2.0, 0.0, -1.0], [0.0, 0.0], [5.0, 5.0, 1.0, -6.0]])
def test_gradients_are_those_of_autograd(logits, weight):
    points = plots.gradient_points(logits, background=0.5, weight=weight)
    K = len(logits)
    settings = {
        "softmax": {},
        "background": {"weights": torch.full((K + 1,), weight), "division": "rows"},
        "entropic": {"weight": weight},
    }
    for name, part in points.groupby("loss"):
        z = torch.tensor([[*logits, 0.5][: len(part)]], dtype=torch.float64, requires_grad=True)
        function = getattr(losses, name)
        value = function(Outputs(z, features=None), torch.tensor([NEGATIVE]), **settings[name])
        # where() gives S no path from the logits to its constant 0
        (theirs,) = torch.autograd.grad(value.sum(), z)
        np.testing.assert_allclose(part["gradient"], theirs[0].numpy(), atol=1e-7)
        np.testing.assert_allclose(part["probability"], z.softmax(1)[0].detach(), atol=1e-12)


def test_gradients_of_a_loss_sum_to_zero_and_entropic_rests_where_classes_are_alike():
    points = plots.gradient_points([3.0, -2.0, 0.5], background=1.0, weight=2.0)
    np.testing.assert_allclose(points.groupby("loss")["gradient"].sum(), 0, atol=1e-12)
    alike = plots.gradient_points([1.5] * 3, background=1.0, weight=2.0).set_index("loss")
    np.testing.assert_allclose(alike.loc["entropic", "gradient"], 0, atol=1e-12)
    assert (alike.loc["background", "gradient"].abs() > 0.1).all()


# Thumbnails


def judged_table(samples=60):
    rng = np.random.default_rng(1)
    role = np.resize(["known", "negative", "unknown"], samples)
    label = np.select([role == "known", role == "negative"], [rng.integers(0, 3, samples), -1], -2)
    table = pd.DataFrame({"role": role, "label": label, "pred": rng.integers(0, 3, samples)})
    return table.assign(max_softmax=rng.random(samples).round(1))


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.75, 2.0])
def test_the_images_are_the_worst_errors_on_either_side_of_the_threshold(threshold):
    table = judged_table()
    found = frames.judged(table, score="max_softmax", threshold=threshold, most=4)
    unknown = table.loc[table["role"] == "unknown", "max_softmax"]
    known = table.loc[table["role"] == "known", "max_softmax"]
    accepted = sorted(unknown[unknown >= threshold], reverse=True)[:4]
    assert list(found["accepted"]["max_softmax"]) == accepted
    assert list(found["rejected"]["max_softmax"]) == sorted(known[known < threshold])[:4]
    for rows in found.values():
        pd.testing.assert_frame_equal(table.iloc[rows["place"]], rows.drop(columns="place"))


def drawn(figure):
    """The pixels of each thumbnail, strip by strip."""
    return [[np.asarray(image.get_array()) for image in ax.images] for ax in figure.axes[3:]]


def test_an_array_and_a_function_give_the_same_images_and_they_are_those_of_the_rows():
    table = judged_table()
    pixels = np.random.default_rng(0).integers(0, 256, (60, 3, 6, 5), dtype=np.uint8)
    point = {"score": "max_softmax", "threshold": 0.5}
    found = frames.judged(table, **point)
    for images in (pixels, lambda rows: pixels[rows["place"]]):
        figure = plots.operating_point(table, images=images, **point)
        for shown, rows in zip(drawn(figure), found.values(), strict=True):
            whole = pixels[rows["place"]].transpose(0, 2, 3, 1)
            np.testing.assert_array_equal(np.array(shown), whole)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (np.zeros((59, 1, 4, 4), np.uint8), "need 60 images .* got 59"),
        (np.zeros((60, 4), np.uint8), r"got 60: \(4,\)"),
        (np.zeros((60, 3, 4, 4)), "float64"),
        (lambda rows: np.zeros((len(rows) + 1, 1, 4, 4), np.uint8), "need 7 images .* got 8"),
    ],
)
def test_images_that_do_not_fit_are_refused(images, said):
    point = {"score": "max_softmax", "threshold": 0.5, "images": images}
    with pytest.raises(ValueError, match=said):
        plots.operating_point(judged_table(90).head(60), **point)


NONE = {"threshold": 2.0, "images": np.zeros((60, 1, 4, 4), np.uint8)}


def test_where_nothing_is_accepted_the_row_says_so():
    figure = plots.operating_point(judged_table(), score="max_softmax", **NONE)
    assert [text.get_text() for text in figure.axes[3].texts] == ["none at this threshold"]


ONE = {"wrong": 1, "rejection": 1}
FIGURES = {
    "costs": lambda: plots.least_cost(
        costs(selective.coverage_points(pool(methods=list("abcdefg"))), **ONE), **ONE
    ),
    "gradients": lambda: plots.loss_gradients(
        plots.gradient_points([1, 0, -1], background=0, weight=1)
    ),
    "images": lambda: plots.operating_point(
        judged_table(), score="max_softmax", threshold=0.5, images=np.zeros((60, 3, 6, 5), np.uint8)
    ),
    "no image": lambda: plots.operating_point(judged_table(), score="max_softmax", **NONE),
}

# Roles


@pytest.fixture(scope="module")
def sizes():
    everything = pd.DataFrame({"wnid": hierarchy.ILSVRC})
    files = protocols.ilsvrc_files(everything).groupby(["wnid", "split"]).size()
    return files.unstack()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_move_leaves_a_protocol_as_it_is_and_counts_are_those_of_its_images(number, sizes):
    classes = protocols.PROTOCOLS[f"p{number}"]()
    same = protocols.moved(classes, {})
    pd.testing.assert_frame_equal(same, classes)
    assert same.attrs == classes.attrs
    ours = protocols.class_counts(classes, sizes)
    # the paper's, which test_protocols.py finds in the divided files
    theirs = tables.published("palechor2023", "table1").query("protocol == @number").fillna(0)
    assert list(ours["role"]) == list(theirs["role"])
    assert list(ours["classes"]) == list(theirs["classes"])
    assert list(ours["train and val"]) == list(theirs["train"] + theirs["val"])
    assert list(ours["test"]) == list(theirs["test"])


FOX, DOG, HUNTING, ANIMAL = "n02118333", "n02084071", "n02087122", "n00015388"


def test_a_moved_superclass_takes_its_classes_along_and_back():
    classes = protocols.p1()
    after = protocols.moved(classes, {FOX: "unknown"})
    foxes = set(hierarchy.leaves(FOX))
    assert set(after.loc[after["superclass_wnid"] == FOX, "role"]) == {"unknown"}
    assert set(after["wnid"]) == set(classes["wnid"])
    before, now = (frame.set_index("wnid")["role"].sort_index() for frame in (classes, after))
    changed = before != now
    assert set(changed[changed].index) == foxes
    back = protocols.moved(after, {FOX: "negative"})
    columns = ["wnid", "role", "label"]
    key = {"by": "wnid", "ignore_index": True}
    pd.testing.assert_frame_equal(
        back[columns].sort_values(**key), classes[columns].sort_values(**key), check_like=True
    )
    out = protocols.moved(classes, {FOX: "out"})
    assert set(classes["wnid"]) - set(out["wnid"]) == foxes


def test_the_nearest_superclass_decides():
    p2 = protocols.p2()
    hunting = set(hierarchy.leaves(HUNTING))
    after = protocols.moved(p2, {DOG: "unknown"}).set_index("wnid")["role"]
    before = p2.set_index("wnid")["role"]
    assert (after[sorted(hunting)] == before[sorted(hunting)]).all()
    assert set(after[sorted(set(hierarchy.leaves(DOG)) - hunting)]) == {"unknown"}
    both = protocols.moved(protocols.p1(), {HUNTING: "negative", ANIMAL: "unknown"})
    role = both.set_index("wnid")["role"]
    assert set(role[sorted(hunting)]) == {"negative"}
    assert role[hierarchy.leaves(DOG)[0]] == "known"  # a dog, but no hunting dog


def test_labels_are_counted_anew():
    after = protocols.moved(protocols.p1(), {FOX: "known"})
    known = after[after["role"] == "known"].sort_values("wnid")
    assert list(known["label"]) == list(range(len(known))) == list(range(120))


@pytest.mark.parametrize(
    ("roles", "said"), [({FOX: "friend"}, "got friend"), ({DOG: "out"}, "0 known")]
)
def test_a_move_that_leaves_no_protocol_is_refused(roles, said):
    with pytest.raises(ValueError, match=said):
        protocols.moved(protocols.p1(), roles)


def spanned(*frames):
    wnids = {wnid for frame in frames for wnid in frame["superclass_wnid"]}
    named = {w: [(s, hierarchy.name(s)) for s in hierarchy.path(w)] for w in sorted(wnids)}
    return plots.reduced_tree(named)


def test_the_tree_shows_every_superclass_with_its_number_of_classes(sizes):
    classes = protocols.p3()
    figure = plots.role_tree(spanned(classes), classes, protocols.class_counts(classes, sizes))
    middle, right = figure.axes[1:]
    shown = sorted(int(text.get_text()) for text in middle.texts)
    assert shown == sorted(classes.groupby(["superclass_wnid", "role"]).size())
    assert [bar.get_width() for bar in right.patches] == [151, 97, 164]
    assert "151 classes" in right.texts[0].get_text()
    assert "0 train and val" in right.texts[2].get_text()


# Descriptions


def test_a_work_has_a_marker_in_the_lane_of_each_of_its_tasks_and_the_oldest_is_on_top():
    works = tables.published("history", "names")
    assert works["year"].is_monotonic_increasing
    (ax,) = plots.timeline(works).axes
    lanes = [label.get_text().replace("\n", "") for label in ax.get_xticklabels()]
    assert ax.yaxis_inverted()
    for place, (line, work) in enumerate(zip(ax.lines, works.itertuples(), strict=True)):
        assert [lanes[int(x)] for x in line.get_xdata()] == work.tasks.split("; ")
        assert set(line.get_ydata()) == {place}
        assert ax.get_yticklabels()[place].get_text().startswith(f"{work.who}: {work.word}")
