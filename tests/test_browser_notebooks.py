"""In a real browser: notebooks in which something moves run, and it moves by keyboard."""

import json
import re
import shutil
from contextlib import suppress
from functools import partial

import browser
import nbformat
import pytest

from osnb.base import workbook

pytestmark = browser.MARKS

FEWER = {"resamples: int = 1000": "resamples: int = 50", "epochs: int = 20": "epochs: int = 2"}
LIVE = """
import pandas as pd

from osnb.base import workbook
from osnb.plots import widgets
from osnb.teach import touch

(folder := workbook.out() / "live").mkdir(parents=True)
with widgets.live(folder):
    pd.DataFrame({"epoch": [1, 2], "loss": [2, 1]}).to_parquet(folder / "history.parquet")
"""
MORE = {"10_palechor_protocols": [LIVE, "touch.show('pad')"]}  # cells below those of a notebook
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


def explorers(path):
    """The explorers that the notebook's code cells show, by name."""
    cells = json.loads(path.read_text())["cells"]
    code = "\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "code")
    return re.findall(r"widgets\.(?!live\b)(\w+)\(", code)


SOURCES = sorted((workbook.root() / "notebooks").glob("*.ipynb"))
FIRST = {name: path.stem for path in reversed(SOURCES) for name in explorers(path)}
NOTEBOOKS = sorted({*FIRST.values(), *MORE})  # nbval runs the rest


@pytest.fixture(scope="module")
def context(chromium):
    """Of pages that share what they have fetched: JupyterLab is large."""
    return chromium.new_context(**browser.VIEW)


@pytest.fixture
def page(context):
    with browser.paged(context) as page:
        yield page


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """(address, token, folder) of a JupyterLab with copies of the notebooks, outputs taken away."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(
        workbook.root() / "notebooks", folder / "work", ignore=shutil.ignore_patterns(".*")
    )
    for name in NOTEBOOKS:
        _quick(folder / "work" / f"{name}.ipynb")
    for name, values in SETTINGS.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with browser.serving(folder, f"--ServerApp.root_dir={folder}/work") as (address, token):
        yield address, token, folder


def _quick(path):
    """Fewer draws and epochs, no outputs of before, and no cell below the last explorer.

    nbval runs notebooks whole and as they are: here it is looked at what moves.
    """
    text = path.read_text()
    for name, value in FEWER.items():
        text = text.replace(name, value)
    content = json.loads(text)
    code = [x for x in content["cells"] if x["cell_type"] == "code"]
    last = [x for x in code if "widgets." in "".join(x["source"])][-1]
    content["cells"] = content["cells"][: content["cells"].index(last) + 1]
    content["cells"] += map(nbformat.v4.new_code_cell, MORE.get(path.stem, ()))
    for cell in code:
        cell |= {"outputs": [], "execution_count": None}
    path.write_text(json.dumps(content))


@pytest.fixture
def opened(lab, page):
    """name -> path, once that notebook stands in the page; then its kernel and results go."""
    address, token, folder = lab

    def go(name):
        # a workspace of its own, or JupyterLab opens again what was open before
        page.goto(f"{address}/lab/workspaces/{name}/tree/{name}.ipynb?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=browser.START * 1000)
        page.wait_for_function(browser.IDLE, timeout=browser.START * 1000)
        return folder / "work" / f"{name}.ipynb"

    yield go
    page.goto("about:blank")  # which would ask for a new kernel
    browser.end_kernels(address, token)
    shutil.rmtree(folder / "OSNB_OUT", ignore_errors=True)  # else results notebooks read trainings


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_in_jupyterlab_to_its_last_explorer_and_all_move(opened, page, name):
    path = opened(name)
    _run_all(page)
    boxes = page.locator(".jp-OutputArea-output .jupyter-widgets.widget-vbox")
    wanted = len(explorers(path))
    browser.until(page, lambda: boxes.count() == wanted, browser.START, f"not {wanted} widgets")
    _nothing(page, lambda: page.eval_on_selector_all(".jp-Notebook img", IMAGES))
    _save(page)
    _all_ran(path)
    _shoot(page, f"{name}-end")
    page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
    _shoot(page, f"{name}-top")
    for number in range(wanted):
        _moves(page, boxes.nth(number), f"{name}-{number + 1}")
    if name in MORE:
        _answers(page, path)
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
