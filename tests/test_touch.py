"""The pad and the explorers, as far as no browser is needed: their numbers and their pages."""

import base64
import json
import re

import anywidget
import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d

from osnb import metrics
from osnb.base import tables, workbook
from osnb.evidence import samples
from osnb.experiment import Experiment, Machine
from osnb.teach import touch
from tests.tools import pad

PAD = json.loads((touch.HERE / "pad.json").read_text())


def forward(network, images):
    """The logits by torch, from the numbers of pad.json."""
    numbers = np.frombuffer(base64.b64decode(network["weights"]), "<f2").astype(np.float32)
    numbers, x = torch.tensor(numbers), images
    for layer in network["layers"]:
        ins, outs, stride = layer["inputs"], layer["outputs"], layer["stride"]
        size = ins * outs * (9 if stride else 1)
        weight, bias, numbers = numbers[:size], numbers[size : size + outs], numbers[size + outs :]
        if stride:
            kernel = weight.reshape(3, 3, ins, outs).permute(3, 2, 0, 1)
            x = conv2d(x, kernel, bias, stride=stride, padding=1).relu()
        else:
            x = x.mean(dim=(2, 3)) @ weight.reshape(ins, outs) + bias
    assert not len(numbers)
    return x.numpy()


def test_the_networks_are_small_and_theirs_are_the_numbers_that_were_written():
    assert len(json.dumps(PAD["networks"])) < 1_000_000
    for method in pad.METHODS:
        written = PAD["networks"][method]
        shapes = [(x["inputs"], x["outputs"], 9 if x["stride"] else 1) for x in written["layers"]]
        size = sum(ins * outs * places + outs for ins, outs, places in shapes)
        assert size <= 60_000
        assert len(base64.b64decode(written["weights"])) == 2 * size
        assert workbook.digest(written["weights"]) == PAD["made"][method]["weights"]


@pytest.mark.parametrize("method", pad.METHODS)
def test_the_stamp_says_what_would_be_trained_today(method):
    settings = Experiment.named(method=method, **pad.RECIPE).settings
    assert PAD["made"][method]["settings"] == json.loads(json.dumps(settings))
    assert PAD["tpr"] == pad.TPR


@pytest.mark.slow
def test_thresholds_and_accuracies_are_those_of_held_out_drawings():
    parts = Experiment.named(method="softmax", **pad.RECIPE).parts(Machine())
    rows = parts.of("val", "known", "negative")
    images = torch.tensor(parts.images.read(rows.index.to_numpy()).numpy()) / 255
    label, known = rows["label"].to_numpy(), (rows["label"] >= 0).to_numpy()
    assert known.sum() == 40 * len(PAD["classes"])
    for network in PAD["networks"].values():
        logits = forward(network, images)[:, : len(PAD["classes"])]
        share = torch.tensor(forward(network, images)).double().softmax(dim=1).numpy()
        msp = share[:, : len(PAD["classes"])].max(axis=1)
        right = logits.argmax(axis=1) == label
        side = samples.Side(msp[known], right[known], msp[~known])
        threshold = samples.chosen("tpr", PAD["tpr"], side, share=0, seed=0)["bound"]
        assert network["threshold"] == pytest.approx(threshold, abs=1e-5)
        assert network["accuracy"] == pytest.approx(right[known].mean(), abs=2e-3)
        assert network["fpr"] == pytest.approx((msp[~known] >= threshold).mean(), abs=2e-3)
        assert network["auroc"] == pytest.approx(metrics.auroc(msp[known], msp[~known]), abs=2e-3)
        assert (msp[known] >= threshold).mean() > PAD["tpr"]


def test_every_class_has_a_drawing_to_choose_but_those_that_are_kept_off():
    names = [each["name"] for each in PAD["drawings"]]
    assert names == sorted(set(names))
    assert not {*pad.KEPT_OFF} & {*names}
    assert {x["name"] for x in PAD["drawings"] if x["role"] == "known"} == {*PAD["classes"]}
    assert len(names) == 93  # of 94 classes one is kept off


@pytest.mark.parametrize("name", touch.SHOWN)
def test_a_page_holds_all_that_it_needs(name):
    text = touch.page(name)
    assert not re.search(
        r"(src|href)=|@import|url\(|fetch\(|https?://(?!www.w3.org/2000/svg)", text
    )
    assert text.count("</script>") == 2
    assert dict(touch.files())[f"_static/touch/{name}.html"] == text.encode()


def test_arrows_lie_among_all_test_images_of_their_network():
    shown = touch.vectors()
    largest = [[logit for logit, _ in shown[side]] for side in ("known", "unknown")]
    scores = workbook.root() / "figures" / "21_vaze_train" / shown["run"] / "scores.parquet"
    table = tables.read(scores)
    known = table["role"] == "known"
    whole = metrics.auroc(table.loc[known, "max_logit"], table.loc[~known, "max_logit"])
    assert metrics.auroc(*map(np.array, largest)) == pytest.approx(whole, abs=1e-4)
    assert [*map(len, largest)] == [known.sum(), (~known).sum()]


def test_the_report_lacks_the_explorers_whose_runs_a_project_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "root", lambda: tmp_path)
    assert [*dict(touch.files())] == ["_static/touch/pad.html", "_static/touch/ten.html"]


def test_a_wrong_name_answers_with_the_right_ones():
    with pytest.raises(KeyError, match="pad"):
        touch.show("pond")


def test_a_notebook_keeps_no_numbers_and_frames_the_page_for_those_without_a_kernel():
    widget = touch.show("pad")
    assert isinstance(widget, anywidget.AnyWidget)
    assert len(json.dumps(widget.get_state(), default=str)) < 60_000
    data, _ = widget._repr_mimebundle_()
    assert 'data="../_static/touch/pad.html"' in data["text/html"]
    assert data["text/plain"] == touch.SHOWN["pad"][0]
    sent = []
    widget.send = sent.append
    widget._handle_custom_msg("data", [])
    assert sent[0]["networks"].keys() == {*pad.METHODS}
