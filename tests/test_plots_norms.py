"""Figures of appendix B: what is drawn is what the tables say, and a gap says that it is one."""

import numpy as np
import pandas as pd
import pytest

from osnb import plots


def history(features=64, decay=0.0, epochs=12):
    """One run as from `tables.stack(..., file="history")`, with numbers of its own."""
    rng, at = np.random.default_rng(features), np.arange(1, epochs + 1)
    frame = pd.DataFrame({"epoch": at, "features": features, "weight_decay": decay})
    frame["norm_unknown"] = at / (1 + decay)
    frame["norm_known"] = frame["norm_unknown"] * np.linspace(1, 1.5, epochs)
    frame["norm_of_classes"] = np.sqrt(at)
    for rule in ("max_logit", "max_softmax", "feature_norm"):
        frame[f"auroc_{rule}"] = rng.random(epochs)
    return frame


WHOLE = pd.concat([history(2), history(), history(decay=0.5), history(decay=2.0)])


def outputs(epochs=(1, 2), classes=("a class", "another of a very long name", "third")):
    """Test images in the plane, further out at every epoch."""
    rng = np.random.default_rng(0)
    names = np.repeat([*classes, "whatever"], 5)
    base = pd.DataFrame(rng.random((len(names), 2)), columns=["x", "y"])
    base = base.assign(role=np.where(names == "whatever", "unknown", "known"))
    base["class"] = names
    return pd.concat([base.assign(x=e * base["x"], y=e * base["y"], epoch=e) for e in epochs])


NONE = pd.DataFrame()
FIGURES = {
    "norms": lambda: plots.feature_norms(WHOLE, outputs((3, 7, 9)), snapshots=[3, 7, 9]),
    "without a plane": lambda: plots.feature_norms(history(), NONE, snapshots=[1, 2]),
    "nothing": lambda: plots.feature_norms(NONE, NONE),
    "plane": lambda: plots.feature_plane(outputs(), epochs=[1, 2]),
    "four planes": lambda: plots.feature_plane(outputs((1, 2, 5, 9)), epochs=[1, 2, 5, 9]),
    "one plane": lambda: plots.feature_plane(outputs(), epochs=[2]),
    "no plane": lambda: plots.feature_plane(pd.DataFrame(), epochs=[1]),
}


# Numbers


def drawn(ax):
    """{label: heights} of the lines of a panel that have a label."""
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    return {line.get_label(): line.get_ydata().tolist() for line in lines}


def test_panels_have_the_letters_of_the_caption_and_draw_the_columns_of_their_network():
    table = outputs((3, 7, 9))
    figure = plots.feature_norms(WHOLE, table, snapshots=[3, 7, 9])
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title[0] for title in titles] == list("abcdefghi")
    assert [title[4:] for title in titles[:3]] == ["D = 64", "D = 2", "D = 64"]
    assert [title[4:] for title in titles[3:6]] == ["epoch 3", "epoch 7", "epoch 9"]
    for ax, epoch in zip(figure.axes[3:6], (3, 7, 9), strict=True):
        *marks, _, _ = ax.lines
        places = np.concatenate([line.get_xydata() for line in marks])
        part = table[table["epoch"] == epoch]
        assert sorted(map(tuple, places)) == sorted(zip(part["x"], part["y"], strict=True))
    rules = {"MLS": "max_logit", "MSP": "max_softmax", "norm alone": "feature_norm"}
    for features, lengths in ((2, 1), (64, 0)):
        one = history(features)
        norms = {role: one[f"norm_{role}"].tolist() for role in ("known", "unknown")}
        norms["head's rows"] = one["norm_of_classes"].tolist()
        assert drawn(figure.axes[lengths]) == norms
    auroc = {name: history()[f"auroc_{rule}"].tolist() for name, rule in rules.items()}
    assert drawn(figure.axes[2]) == auroc
    legends = {title[0] for ax, title in zip(figure.axes, titles, strict=True) if ax.get_legend()}
    assert legends == set("acdg")
    names = [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes[3:6]]
    assert names == [("$f_1$", "$f_2$")] * 3
    assert "dashed verticals in b: the epochs of d to f" in figure.get_supxlabel()
    marks = [line.get_xdata()[0] for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert [mark for mark in marks if mark in (3, 7, 9)] == [3, 7, 9]
    other = pd.concat([history(2, decay=0.5), history(), history(decay=0.5)])
    panel = plots.feature_norms(other, NONE).axes[0]  # the decay of the plane
    assert drawn(panel)["known"] == history(decay=0.5)["norm_known"].tolist()
    with pytest.raises(ValueError, match="three snapshots at most"):
        plots.feature_norms(WHOLE, table, snapshots=[1, 2, 3, 4])


def test_weight_decays_are_compared_of_the_networks_that_are_no_plane():
    axes = plots.feature_norms(WHOLE, NONE).axes[3:]
    assert len(axes) == 3
    for ax in axes:
        assert list(drawn(ax)) == ["weight decay 0", "weight decay 0.5", "weight decay 2"]
    assert drawn(axes[0])["weight decay 2"] == history(decay=2.0)["norm_known"].tolist()
    assert drawn(axes[1])["weight decay 2"] == history(decay=2.0)["norm_unknown"].tolist()
    rows = history(decay=0.5)["norm_of_classes"].tolist()
    assert drawn(axes[2])["weight decay 0.5"] == rows


def test_seeds_of_one_kind_are_one_line_their_mean_in_a_band():
    longer = history().assign(norm_known=lambda h: 3 * h["norm_known"])
    ax = plots.feature_norms(pd.concat([history(), longer]), NONE).axes[0]
    assert drawn(ax)["known"] == pytest.approx((2 * history()["norm_known"]).tolist())
    assert len(ax.collections) == 1


def test_panels_without_a_run_say_so():
    figure = plots.feature_norms(history(), NONE, snapshots=[1, 2])
    said = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    assert said == [[], ["not run"], [], *[["not run"]] * 2, [], [], []]


def test_a_plane_by_itself_is_titled_by_its_epoch_alone():
    axes = plots.feature_plane(outputs(), epochs=[1, 2]).axes
    assert [ax.get_title() for ax in axes] == ["epoch 1", "epoch 2"]


def test_every_image_is_drawn_once_at_its_place_and_arcs_have_the_mean_norms():
    table = outputs()
    for ax, epoch in zip(plots.feature_plane(table, epochs=[1, 2]).axes, (1, 2), strict=True):
        part = table[table["epoch"] == epoch]
        *marks, known, unknown = ax.lines
        places = np.concatenate([line.get_xydata() for line in marks])
        assert sorted(map(tuple, places)) == sorted(zip(part["x"], part["y"], strict=True))
        for line, role in ((known, "known"), (unknown, "unknown")):
            side = part[part["role"] == role]
            radius = np.hypot(side["x"], side["y"]).mean()
            assert np.hypot(*line.get_xydata().T) == pytest.approx(np.full(200, radius))


def test_all_epochs_are_drawn_to_one_scale_that_holds_the_last():
    first, second = plots.feature_plane(outputs(), epochs=[1, 2]).axes
    assert first.get_xlim() == second.get_xlim()
    assert second.get_ylim()[1] >= outputs()["y"].max()
