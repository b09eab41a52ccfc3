"""In a real browser: the report reads from a folder, and the tour's slider moves in JupyterLab.

Wherever a Chromium or Chrome is found; conftest.py says loudly when none is.
"""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from osnb import gallery, report, repro

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROME = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *(["--no-sandbox"] if os.name == "posix" and os.getuid() == 0 else []),
]
MENU = '.lm-Menu-item[data-command="{}"]'
IDLE = "document.querySelector('#jp-main-statusbar').textContent.includes('| Idle')"
SETTINGS = {  # cells out of sight stay in the page, where a test finds them; no news from afar
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
START, RUN = 60, 240  # seconds at most

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROME, reason=f"no browser: none of {', '.join(BROWSERS)} is installed"
    ),
]


@pytest.fixture
def page():
    """A page of a browser; `page.said` are its errors, `page.asked` what it fetched from afar."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROME, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.said, page.asked = [], []
        page.on("console", lambda x: page.said.append(x.text) if x.type == "error" else None)
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda x: None if _near(x.url) else page.asked.append(x.url))
        yield page
        browser.close()


def _near(url):
    return url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:", "ws://127.0.0.1:"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the report of what is in git."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OSNB_OUT", str(tmp_path_factory.mktemp("site")))
        return report.build().parent


def test_the_front_page_lists_all_artefacts_and_shows_their_pictures(site, page):
    page.goto(f"{site.as_uri()}/index.html")
    text = page.inner_text("body")
    wanted = gallery.artefacts(repro.root()).drop_duplicates(["paper", "artefact"])
    assert len(wanted) == 44
    assert not [row.title for row in wanted.itertuples() if row.title.replace("'", "’") not in text]
    sizes = page.eval_on_selector_all(
        "img", "all => all.map(x => [x.src, x.naturalWidth, x.width])"
    )
    done = wanted[(wanted["run"] != "") & (wanted["kind"] == "figure")]
    assert len(sizes) == len(done) > 0
    assert not [src for src, natural, drawn in sizes if not natural or not drawn]
    assert (page.said, page.asked) == ([], [])


def test_every_page_opens_from_the_folder_without_a_server(site, page):
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        broken = "all => all.filter(x => !x.naturalWidth).map(x => x.src)"
        assert page.eval_on_selector_all("img", broken) == [], path
        wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not page.evaluate(wide), f"{path} must be scrolled sideways"
        for link in page.eval_on_selector_all("a[href]", "all => all.map(x => x.href)"):
            there = link.partition("#")[0].removeprefix("file://")
            assert not link.startswith("file:") or os.path.isfile(there), (path, link)
    assert (page.said, page.asked) == ([], [])


def test_equations_are_set(site, page):
    page.goto(next((site / "11_palechor_losses").glob("m*.html")).as_uri())
    page.wait_for_selector("mjx-container mjx-math")
    assert page.locator("mjx-merror").count() == 0
    assert page.evaluate("document.fonts.ready.then(x => [...x].some(y => y.status == 'loaded'))")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_front_page_fits_a_phone_and_a_laptop(site, page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{site.as_uri()}/index.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cards = page.eval_on_selector_all(".card", "all => all.map(x => x.offsetWidth)")
    assert len(set(cards)) == 1
    assert max(cards) <= width


def test_figures_keep_white_paper_in_dark_mode(site, page):
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.as_uri()}/index.html")
    colour = "x => getComputedStyle(x).backgroundColor"
    assert page.eval_on_selector(".card img", colour) == "rgb(255, 255, 255)"
    assert page.eval_on_selector("body", colour) != "rgb(255, 255, 255)"


@pytest.fixture
def lab(tmp_path):
    """(address, folder) of a JupyterLab that knows nothing of the user's settings."""
    folder = tmp_path / "work"
    shutil.copytree(repro.root() / "notebooks", folder, ignore=shutil.ignore_patterns(".*"))
    _without_outputs(folder / "00_tour.ipynb")
    for name, values in SETTINGS.items():
        file = tmp_path / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with _serving(tmp_path, f"--ServerApp.root_dir={folder}") as (address, token):
        yield f"{address}/lab/tree/00_tour.ipynb?token={token}", folder


@contextmanager
def _serving(tmp_path, *words):
    """(address, token) of a JupyterLab server whose own files are all in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *words),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"),
        "--LabApp.extension_manager=readonly",
        *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url="),
    ]
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {
        name: str(tmp_path / name) for name in (*places, "JUPYTERLAB_WORKSPACES_DIR", "OSNB_OUT")
    }
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"), "JUPYTER_TOKEN": token}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
        try:
            _answers(f"http://127.0.0.1:{port}/api?token={token}", process, tmp_path / "log")
            yield f"http://127.0.0.1:{port}", token
        finally:
            process.terminate()
            process.wait(START)


def _without_outputs(path):
    """Take the outputs away that are in git, so that those seen are new."""
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    path.write_text(json.dumps(content))


def _answers(address, process, log):
    """Wait for the server."""
    end = time.monotonic() + START
    while True:
        try:
            return urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.5)


def test_the_tour_runs_in_jupyterlab_and_its_slider_moves_the_marked_point(lab, page):
    address, folder = lab
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=START * 1000)
    page.wait_for_function(IDLE, timeout=START * 1000)
    page.click('.lm-MenuBar-itemLabel:text-is("Run")')
    page.click(MENU.format("runmenu:run-all"))
    slider = page.locator(".jupyter-widgets.widget-slider .noUi-handle")
    slider.wait_for(timeout=RUN * 1000)
    prompts = "[...document.querySelectorAll('.jp-CodeCell .jp-InputArea-prompt')]"
    ran = prompts + ".every(x => /\\[\\d+\\]/.test(x.textContent))"
    page.wait_for_function(f"{ran} && {IDLE}", timeout=RUN * 1000)
    assert page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    before = _shown(page)
    slider.scroll_into_view_if_needed()
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    end = time.monotonic() + START
    while any(new == old for new, old in zip(_shown(page), before, strict=True)):
        assert time.monotonic() < end, (_shown(page)[:2], before[:2])
        page.wait_for_timeout(200)
    assert float(_shown(page)[0]) > float(before[0])
    if os.environ.get("OSNB_SHOTS"):  # a folder, for people who want to look
        page.screenshot(path=f"{os.environ['OSNB_SHOTS']}/lab.png")
    file, blank = folder / "00_tour.ipynb", (folder / "00_tour.ipynb").read_bytes()
    page.keyboard.press("Control+s")
    page.wait_for_selector(".jp-mod-dirty", state="detached", timeout=START * 1000)
    assert file.read_bytes() != blank
    _ran_whole(file)
    assert page.asked == []


def _shown(page):
    """The threshold, the rates in words, and the bytes of the picture with the marked point."""
    box = page.locator(".jupyter-widgets.widget-vbox")
    words = [box.locator(x).inner_text() for x in (".widget-readout", ".widget-html-content")]
    return *words, box.locator("img").evaluate("async x => await (await fetch(x.src)).text()")


def _ran_whole(path):
    """Every code cell of the saved notebook was executed, and none ended in an error."""
    cells = [x for x in json.loads(path.read_text())["cells"] if x["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [x for x in outputs if x["output_type"] == "error"]


@pytest.fixture
def opened(tmp_path):
    """What `make lab` opens, served from the project's folder, with the settings it writes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    words = ["make", "-C", str(repro.root()), "--dry-run", "lab"]
    plan = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "overrides.json").write_text(re.search(r"echo '(.+)' >", plan)[1])
    url = re.search(r"--LabApp.default_url=\S+", plan)[0]
    words = (f"--ServerApp.root_dir={repro.root()}", f"--LabApp.app_settings_dir={tmp_path}/app")
    with _serving(tmp_path, *words, url) as (address, token):
        yield f"{address}/?token={token}"


def test_make_lab_opens_the_index_as_a_page_whose_links_open_notebooks(opened, page):
    page.goto(opened)
    page.wait_for_selector(".jp-MarkdownViewer h1", timeout=START * 1000)
    assert "/lab/tree/notebooks/README.md" in page.url
    assert page.locator(".jp-FileEditor").count() == 0
    names = sorted(path.stem for path in (repro.root() / "notebooks").glob("*.ipynb"))
    rows = page.locator(".jp-MarkdownViewer table").first.locator("tbody tr")
    assert rows.locator("td:first-child").all_inner_texts() == names
    if os.environ.get("OSNB_SHOTS"):
        page.screenshot(path=f"{os.environ['OSNB_SHOTS']}/index.png")
    page.locator(f'.jp-MarkdownViewer a:text-is("{names[0]}")').first.click()
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=START * 1000)
    page.wait_for_function(IDLE, timeout=START * 1000)  # a server does not end while one starts
    assert (page.said, page.asked) == ([], [])
