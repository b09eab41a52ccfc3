"""In a real browser: what moves in a notebook moves by keyboard; nbval runs the notebooks."""

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import browser
import nbformat
import pytest
from test_widgets import EXPLORERS

pytestmark = browser.MARKS

# of the tables of test_widgets.py, with pictures, and with names as long as notebook 33 has them
TABLES = f"""
import sys

import numpy as np

sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_widgets as made

from osnb.base import workbook
from osnb.evidence import tables
from osnb.plots import widgets
from osnb.teach import touch

methods = tables.published("kim2021", "table5")["method"].unique()
pool = made.pool(methods, "in the place of CIFAR, all but gaussian noise, split 0")
explorers = made.twins(made.scores(), made.features(), pool)
(folder := workbook.out() / "live").mkdir(parents=True)
"""
PICTURES = """
images = np.random.default_rng(0).integers(0, 256, (75, 1, 28, 28), np.uint8)
at = {"score": "max_softmax", "threshold": 0.5}
widgets.threshold_slider(made.scores(), **at, images=images)
"""
LIVE = """
with widgets.live(folder):
    made.write(folder / "history.parquet", 2)
"""
MOVING = {name: f"explorers[{name!r}][0]()" for name in EXPLORERS}
MOVING["threshold_slider"] = PICTURES
MOVING["ProtocolExplorer"] = "made.roles_explorer(*made.protocol())"
CELLS = [TABLES, *MOVING.values(), LIVE, "touch.show('pad')"]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
SETTINGS = {  # cells out of sight stay in the page, where a test finds them; no news from afar
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
STATE = """() => {
    const all = x => [...document.querySelectorAll(x)];
    const mime = x => `[data-mime-type="application/vnd.jupyter.${x}"]`;
    const wrong = all(mime('error') + ',' + mime('stderr')).map(x => x.textContent.trim());
    const prompts = all('.jp-CodeCell .jp-InputArea-prompt');
    const left = prompts.filter(x => !/\\[\\d+\\]/.test(x.textContent));
    const idle = IDLE;
    return {wrong: wrong, over: wrong.length > 0 || (idle && !left.length), left: left.length};
}""".replace("IDLE", browser.IDLE)
IMAGES = """all => all.filter(x => !x.alt.trim() || !x.naturalWidth)
    .map(x => (x.alt.trim() ? 'empty' : 'no alt: ') + x.closest('.jp-Cell').textContent)"""
PICTURE = "all => all.map(x => x.src).join()"
# labels that are cut off, controls and pictures' frames that stick out of their cell, and pictures
# that shrink until nobody can read them: they scroll in their frame instead
CUT = """box => {
    const all = (what, wrong) => [...box.querySelectorAll(what)].filter(wrong);
    const right = x => x.getBoundingClientRect().right;
    const controls = '.widget-label, .widget-readout, .widget-slider';
    return [
        ...all(controls, x => x.scrollWidth > x.clientWidth + 1),
        ...all(controls + ', div:has(> img)', x => right(x) > right(box) + 1),
        ...all('img', x => x.clientWidth < 640),
    ].map(x => x.tagName + ' ' + x.className + ' ' + x.textContent);
}"""
ALONE = {"superclass"}  # chooses what the slider below it moves, so the picture stays
PRESSES, SEEN = 10, 6  # of a key, and seconds in which one of them is seen, or the next follows


@pytest.fixture
def opened(tmp_path, page):
    """The path of a notebook of CELLS, which a JupyterLab shows in the page."""
    for name, values in SETTINGS.items():
        file = tmp_path / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    path = tmp_path / "work" / "moving.ipynb"
    path.parent.mkdir()
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), path)
    with browser.serving(tmp_path, f"--ServerApp.root_dir={path.parent}") as (address, token):
        page.goto(f"{address}/lab/tree/{path.name}?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=browser.START * 1000)
        page.wait_for_function(browser.IDLE, timeout=browser.START * 1000)
        yield path


def test_a_notebook_with_every_explorer_runs_in_jupyterlab_and_all_move(opened, page):
    _run_all(page)
    boxes = page.locator(".jp-OutputArea-output .jupyter-widgets.widget-vbox")
    browser.until(page, lambda: boxes.count() == len(MOVING), browser.START, "widgets lack")
    _nothing(page, lambda: page.eval_on_selector_all(".jp-Notebook img", IMAGES))
    _save(page)
    _all_ran(opened)
    for number, name in enumerate(MOVING):
        _moves(page, boxes.nth(number), name)
    _answers(page, opened)
    assert page.evaluate(STATE)["wrong"] == []
    assert (page.said, page.asked) == ([], [])


def _answers(page, path):
    """A figure that was live is there, and the pad gives the same answers."""
    *_, live, _ = json.loads(path.read_text())["cells"]
    assert [kind for output in live["outputs"] for kind in output["data"] if "image/" in kind]
    page.wait_for_selector(".osnb-touch .card.none", timeout=1000 * browser.RUN)
    page.locator(".osnb-touch select").select_option(label="banana")
    text, aloud = "Drawing of the test set: banana, known. softmax: ", ".osnb-touch [aria-live]"
    browser.until(page, lambda: page.locator(aloud).inner_text().startswith(text), browser.START)
    _shoot(page, "pad-lab")


def _run_all(page):
    """Run > Run All Cells, until every cell has a number and the kernel is idle."""
    page.click('.lm-MenuBar-itemLabel:text-is("Run")')
    page.click('.lm-Menu-item[data-command="runmenu:run-all"]')
    look = partial(page.evaluate, STATE)
    browser.until(page, lambda: look()["over"], browser.RUN, look)
    assert look()["wrong"] == []


def _nothing(page, poor):
    """Wait until there is nothing that is poor, for what is drawn and decoded comes late."""
    browser.until(page, lambda: poor() == [], browser.START, poor)


def _save(page):
    page.keyboard.press("Control+s")
    page.wait_for_selector(".jp-mod-dirty", state="detached", timeout=browser.START * 1000)


def _all_ran(path):
    """In the saved file every code cell ran, nothing is an error and each image has words."""
    cells = [x for x in json.loads(path.read_text())["cells"] if x["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [x for x in outputs if x["output_type"] == "error" or x.get("name") == "stderr"]
    for output in outputs:
        for kind in [x for x in output.get("data", {}) if x.startswith("image/")]:
            assert output["metadata"][kind]["alt"].strip()


def _moves(page, box, shot):
    """Each slider of an explorer moves by an arrow key, and what is shown follows."""
    box.scroll_into_view_if_needed()
    _shoot(box, f"{shot}-before")
    first = box.locator("img").evaluate_all(PICTURE)
    for line in box.locator(".widget-slider").all():
        name = line.locator(".widget-label").inner_text()
        assert name
        handle = line.locator(".noUi-handle")
        key = "ArrowLeft" if _at_end(handle) else "ArrowRight"
        page.wait_for_function(browser.IDLE, timeout=browser.START * 1000)
        handle.focus()
        _press(page, key, _changed(box, line, name), name)
    assert box.locator("img").evaluate_all(PICTURE) != first
    _shoot(box, f"{shot}-after")
    _zoomed(page, box, shot)


def _changed(box, line, name):
    """Whether by now the slider's value is another one, and the picture or sentence with it."""
    value, *old = _shown(box, line)

    def seen():
        now, *new = _shown(box, line)
        return now != value and (new != old or name in ALONE)

    return seen


def _at_end(handle):
    return handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")


def _shown(box, line):
    """The slider's value in words, the sentence, and the picture."""
    words = line.locator(".widget-readout").inner_text()
    shown = box.locator(".widget-html-content")
    return words, shown.inner_text(), shown.locator("img").evaluate_all(PICTURE)


def _press(page, key, changed, name):
    """Press a key until the change is seen; not every step changes what is drawn."""
    for _ in range(PRESSES):
        page.keyboard.press(key)
        with suppress(AssertionError):
            return browser.until(page, changed, SEEN)
    raise AssertionError(f"{key} on {name!r}: nothing changed")


def _zoomed(page, box, shot):
    """At 200 % zoom, where a page is half as wide, nothing is cut off."""
    wide = page.viewport_size
    page.set_viewport_size({key: side // 2 for key, side in wide.items()})
    _nothing(page, partial(box.evaluate, CUT))
    _shoot(box, f"{shot}-zoomed")
    page.set_viewport_size(wide)


def _shoot(what, name):
    if browser.SHOTS:
        what.screenshot(path=f"{browser.SHOTS}/{name}.png")
