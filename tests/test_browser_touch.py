"""In a real browser, offline: the pad and the explorers do what the package does."""

import base64
import math
import re

import browser
import numpy as np
import pandas as pd
import pytest
import torch
from test_touch import forward

from osnb import metrics, scores
from osnb.base.outputs import Outputs
from osnb.datasets import quickdraw
from osnb.evidence import selective
from osnb.teach import touch

pytestmark = browser.MARKS
WIDTHS = [390, 1366]
PAD = touch.pad()


@pytest.fixture(scope="module")
def hundred():
    """Strokes of 100 test drawings of as many classes."""
    table = quickdraw.drawings().query("split == 'test'").drop_duplicates("name")
    return [*table["strokes"].sample(100, random_state=0)]


@pytest.fixture
def opened(page, tmp_path):
    """Opens a page from its file, without a network."""
    page.context.set_offline(True)

    def opening(name, width=1366):
        file = tmp_path / f"{name}.html"
        file.write_text(touch.page(name), encoding="utf8")
        page.set_viewport_size({"width": width, "height": 850})
        page.goto(file.as_uri())
        return page

    yield opening
    assert (page.said, page.asked) == ([], [])


@pytest.fixture
def called(page):
    """Calls the functions of pad.js."""
    page.add_script_tag(content=touch.script("pad"))
    return page.evaluate


def text(packed):
    return base64.b64encode(packed).decode()


def test_pixels_are_those_of_the_reader(called, hundred):
    drawn = called("all => all.map(x => [...pixels(unpacked(x))])", [text(x) for x in hundred])
    expected = np.stack([quickdraw.rendered(each, 32).ravel() for each in hundred])
    assert np.abs(np.array(drawn) - expected).max() <= 1
    assert expected.max() == 255


@pytest.mark.parametrize("method", [*PAD["networks"]])
def test_the_forward_pass_is_torch_s(called, hundred, method):
    images = np.stack([quickdraw.rendered(each, 32) for each in hundred])
    known = len(PAD["classes"])
    theirs = forward(PAD["networks"][method], torch.tensor(images)[:, None] / 255)
    code = """([made, images, known]) => { const layers = network(made); return images.map(x => {
        const z = logits(layers, x); return {z, ...scored(z, known)}; }); }"""
    ours = called(code, [PAD["networks"][method], images.reshape(100, -1).tolist(), known])
    assert np.abs([each["z"] for each in ours] - theirs).max() < 1e-4
    out = Outputs(theirs)
    assert [x["class"] for x in ours] == scores.predicted(out, known=known).tolist()
    for name, rule in {"msp": scores.max_softmax, "mls": scores.max_logit}.items():
        assert np.allclose([x[name] for x in ours], rule(out, known=known), atol=1e-4)


def simple(points, epsilon):
    """Ramer-Douglas-Peucker, in complex numbers."""
    z = np.array([complex(*point) for point in points])
    if len(z) < 3:
        return points
    chord = z[-1] - z[0]
    off = abs(((z - z[0]) * chord.conjugate()).imag / abs(chord)) if chord else abs(z - z[0])
    k = 1 + int(off[1:-1].argmax())
    if off[k] <= epsilon:
        return [points[0], points[-1]]
    return simple(points[: k + 1], epsilon)[:-1] + simple(points[k:], epsilon)


def test_strokes_are_simplified_as_quick_draw_did(called):
    rng = np.random.default_rng(0)
    ways = [np.cumsum(rng.normal(size=(n, 2)), axis=0) * 9 for n in (1, 2, 3, 40, 400)]
    ours = called("x => simplified(x)", [way.tolist() for way in ways])
    low = np.concatenate(ways).min(axis=0)
    scale = 255 / (np.concatenate(ways) - low).max()
    for way, points in zip(ways, ours, strict=True):
        moved = (way - low) * scale
        length = np.r_[0, np.hypot(*np.diff(moved, axis=0).T).cumsum()]
        steps = np.r_[np.arange(math.floor(length[-1]) + 1), length[-1:]]
        fine = np.column_stack([np.interp(steps, length, column) for column in moved.T])
        expected = np.array(simple(fine.tolist() if len(way) > 1 else moved.tolist(), 2.0))
        assert np.abs(np.array(points) - expected).max() <= 0.5 + 1e-6
    every = np.concatenate([np.array(points) for points in ours])
    assert (every.min(), every.max()) == (0, 255)


def test_a_stored_drawing_survives_the_simplification_nearly_unchanged(called, hundred):
    code = "all => all.map(x => [unpacked(x), simplified(unpacked(x))].map(y => [...pixels(y)]))"
    stored, again = np.moveaxis(called(code, [text(each) for each in hundred]), 1, 0)
    assert np.abs(stored - again).mean() < 2  # grey levels: RDP of RDP drops a point now and then


@pytest.mark.parametrize("width", WIDTHS)
def test_the_networks_answer_while_the_line_grows(opened, width):
    page = opened("pad", width)
    box = page.locator(".paper").bounding_box()
    turn = [2 * math.pi * i / 24 for i in range(25)]
    places = [(0.5 + 0.3 * math.cos(a), 0.5 + 0.2 * math.sin(a)) for a in turn]
    answers, milliseconds = [], []
    for i, (x, y) in enumerate(places):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if not i:
            page.mouse.down()
        answers.append(page.locator(".answers").inner_text())
        milliseconds.append(float(page.locator("main").get_attribute("data-milliseconds")))
    page.mouse.up()
    assert len(set(answers)) > 5
    # to be seen with pytest -s; no law, since a busy machine stops any page for a while
    print(f"an answer: {np.median(milliseconds):.1f} ms, at most {max(milliseconds):.1f} ms")
    browser.until(
        page, lambda: "softmax:" in page.locator("[aria-live]").inner_text(), browser.START
    )
    seen(page, f"pad-{width}")
    page.get_by_text("Clear").click()
    assert page.locator(".ink polyline").count() == 0
    assert page.locator(".card.none").count() == 3


def test_a_finger_draws_and_a_second_one_changes_nothing(opened):
    page = opened("pad", 390)
    box, hand = page.locator(".paper").bounding_box(), page.context.new_cdp_session(page)

    def touches(kind, *places):
        points = [
            {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "id": i}
            for i, (x, y) in enumerate(places)
        ]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touches("touchStart", (0.2, 0.2))
    touches("touchMove", (0.5, 0.3))
    touches("touchStart", (0.5, 0.3), (0.8, 0.8))
    touches("touchMove", (0.7, 0.2), (0.9, 0.9))
    touches("touchEnd")
    line = page.locator(".ink polyline")
    assert line.count() == 1
    drawn = np.array([float(x) for x in re.split("[ ,]", line.get_attribute("points"))])
    ends = np.array([(0.2, 0.2), (0.7, 0.2)]) * 288 - 16
    assert np.abs(drawn.reshape(-1, 2)[[0, -1]] - ends).max() < 2
    assert page.locator(".card.none").count() == 0


def test_a_drawing_is_chosen_by_keyboard_and_the_answer_is_read_out(opened):
    page = opened("pad")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    page.keyboard.type("banana")
    aloud = browser.until(
        page,
        lambda: (
            (x := page.locator("[aria-live]").inner_text()).startswith(
                "Drawing of the test set: banana, known."
            )
            and x
        ),
        browser.START,
    )
    drawing = next(x for x in PAD["drawings"] if x["name"] == "banana")
    image = quickdraw.rendered(base64.b64decode(drawing["strokes"]), 32)
    for name, network in PAD["networks"].items():
        out = Outputs(forward(network, torch.tensor(image)[None, None] / 255))
        known = {"known": len(PAD["classes"])}
        (msp,), (c,) = scores.max_softmax(out, **known), scores.predicted(out, **known)
        verdict = "accepted" if msp >= network["threshold"] else "rejected"
        assert f"{name}: {PAD['classes'][c]}, MSP {msp:.2f}" in aloud
        card = page.locator(f"[data-network={name}]").inner_text()
        assert verdict in card
        assert f"MSP {msp:.3f}" in card
    page.get_by_text("Undo a stroke").click()
    assert page.locator("select").first.input_value() == ""  # what is left is not that drawing


def test_ten_samples_have_the_measures_of_the_package_wherever_they_lie(page):
    page.add_script_tag(content=touch.script("ten"))
    rng, start = np.random.default_rng(1), touch.ten()
    places = [[s["score"] for s in start["samples"]]]
    places += (rng.integers(0, 21, (40, 10)) / 20).tolist()
    known, right = (np.array([s[k] for s in start["samples"]]) for k in ("known", "right"))
    for place in places:
        score, target = np.array(place), np.where(right, place, 0.1)
        moved = [s | {"score": v} for s, v in zip(start["samples"], place, strict=True)]
        ours = page.evaluate("([samples, rates]) => measures(samples, rates)", [moved, start])
        by_role = score[known], right[known], score[~known]
        pair = score[known], score[~known]
        theirs = {
            "OSCR area": (metrics.oscr_area, by_role, {}, "exact palechor bisgin arpl"),
            "CCR at FPR 0.5": (metrics.ccr_at_fpr, by_role, {"fpr": 0.5}, "exact palechor bisgin"),
            "FPR at TPR 0.95": (metrics.fpr_at_tpr, pair, {"tpr": 0.95}, "exact kim openood"),
            "AUROC": (metrics.auroc, pair, {}, "exact kim"),
            "AURC": (metrics.aurc, (score, right), {}, "exact kim"),
            "E-AURC": (metrics.e_aurc, (score, right), {}, "exact kim"),
            "AP": (metrics.average_precision, pair, {}, "exact openood"),
        }
        assert ours.keys() == theirs.keys()
        for name, (measure, columns, rates, conventions) in theirs.items():
            assert ours[name].keys() == set(conventions.split())
            for c in conventions.split():
                first = target[known] if c == "palechor" else columns[0]
                value = measure(first, *columns[1:], **rates, convention=c)
                found = np.nan if ours[name][c] is None else ours[name][c]
                assert np.isclose(found, value, equal_nan=True), (name, c, place)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_sample_is_dragged_and_moved_by_keys(opened, width):
    page = opened("ten", width)
    seen(page, f"ten-{width}")
    handle, numbers = page.locator("[data-sample=g]"), page.locator("table")
    before = numbers.inner_text()
    box, axis = handle.bounding_box(), page.locator(".axis").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(axis["x"] + 0.1 * axis["width"], axis["y"] + 20, steps=4)
    page.mouse.up()
    assert float(handle.get_attribute("aria-valuenow")) < 0.2
    assert numbers.inner_text() != before
    page.keyboard.press("End")  # means nothing here
    page.keyboard.press("ArrowRight")
    browser.until(
        page, lambda: "g scores 0." in page.locator("[aria-live]").inner_text(), browser.START
    )
    page.get_by_text("First scores again").click()
    assert numbers.inner_text() == before
    assert "0.646" in before


def test_ten_tied_samples_all_lie_in_the_picture(opened):
    page = opened("ten", 390)
    for handle in page.locator("[data-sample]").all():
        handle.focus()
        for _ in range(20):
            page.keyboard.press("ArrowLeft")
    axis, boxes = page.locator(".axis").bounding_box(), []
    for handle in page.locator("[data-sample]").all():
        assert handle.get_attribute("aria-valuenow") == "0"
        boxes.append(handle.bounding_box())
    assert min(box["y"] for box in boxes) >= axis["y"]
    assert len({box["y"] for box in boxes}) == 10  # each can be seen and taken


def test_arrows_are_scored_as_the_package_does_and_moved(opened):
    data, page = touch.vectors(), opened("vectors", 390)
    known, unknown = np.array(data["known"]), np.array(data["unknown"])
    for name, rule in {"MLS": scores.max_logit, "MSP": scores.max_softmax_log_odds}.items():
        value = metrics.auroc(*(rule(Outputs(x), known=1) for x in (known, unknown)))
        assert f"{name} {value:.3f}" in page.locator("main").inner_text()
    a, b = (scores.softmax(Outputs(np.array([x])), known=1)[0, 0] for x in data["pair"])
    assert abs(a - b) < 0.02
    table = page.locator("table").inner_text()
    assert f"{a:.3f}" in table
    assert f"{b:.3f}" in table
    seen(page, "vectors")
    page.get_by_text("1 more on all logits").click()
    lifted = page.locator("table").inner_text()
    assert f"{a:.3f}" in lifted  # softmax keeps differences, and nothing else
    assert f"{data['pair'][0][0] + 1:.2f}" in lifted
    page.locator("[data-arrow=B]").focus()
    page.keyboard.press("ArrowRight")
    browser.until(page, lambda: f"B {data['pair'][1][0] + 1.2:.2f}" in said(page), browser.START)


def test_near_and_far_are_means_of_the_committed_table(opened):
    page, steps = opened("near", 390), 3
    for place, rows in touch.near().items():
        page.locator("select").first.select_option(place)
        page.locator("input[type=range]").focus()
        page.keyboard.press("Home")
        low = min(row["steps"] for row in rows)
        for _ in range(steps - low):
            page.keyboard.press("ArrowRight")
        table = pd.DataFrame(rows)
        for side, part in {"near": table["steps"] <= steps, "far": table["steps"] > steps}.items():
            text = f"{side}\t{part.sum()}\t{table.loc[part, 'auroc'].mean():.3f}"
            assert text in page.locator("table").inner_text()
        centred = table["auroc"] - table.groupby("split")["auroc"].transform("mean")
        rho = table["steps"].rank().corr(centred.rank())
        assert f"{rho:.3f}" in page.locator("table").inner_text()
    page.locator("select").nth(2).select_option("1")
    assert f"{rows[1]['unknown']}: {rows[1]['steps']} steps" in page.locator("main").inner_text()
    seen(page, "near")


def test_the_cheapest_threshold_is_the_package_s(opened):
    page, data = opened("risk", 390), touch.risk()
    (pool, methods), *_ = data.items()
    rows = [
        {"panel": pool, "printed": name, "kind": "" if right else "error", "score": odds}
        for name, each in methods.items()
        for right, odds in zip(each["right"], each["odds"], strict=True)
    ]
    points = selective.coverage_points(pd.DataFrame(rows))
    costs = selective.cost_points(points, wrong=2.5, rejection=1.0)
    page.locator("input[type=range]").nth(1).focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    for row in costs[costs["cheapest"]].itertuples():
        page.locator("select").nth(1).select_option(row.printed)
        threshold = (
            "reject all" if np.isinf(row.threshold) else f"{1 / (1 + np.exp(-row.threshold)):.3f}"
        )
        text = f"\t{threshold}\t{row.coverage:.3f}\t{row.risk:.3f}\t{row.cost:.3f}"
        assert f"cheapest (green){text}" in page.locator("table").inner_text()
        page.get_by_text("To the cheapest threshold").click()
        assert f"yours (black){text}" in page.locator("table").inner_text()
    page.get_by_text("To a risk of 0.4").click()
    last = methods[row.printed]
    right = np.array(last["right"], bool)
    _, coverage = metrics.coverage_at_risk(np.array(last["odds"]), right, risk=0.4)
    assert f"\t{coverage:.3f}\t" in page.locator("table").inner_text()
    seen(page, "risk")


def said(page):
    return page.locator(".osnb-touch [aria-live]").inner_text()


def seen(page, name):
    """The page fits its window; a picture of it for those who want to look."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    if browser.SHOTS:
        page.screenshot(path=f"{browser.SHOTS}/{name}.png", full_page=True)
