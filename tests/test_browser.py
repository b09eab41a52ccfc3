"""In a real browser: the report reads from a folder, and `make lab` opens the index.

Wherever a Chromium or Chrome is found; conftest.py says loudly when none is.
"""

import os
import re
import subprocess

import browser
import pytest
from test_report import Page, asked, lost

from osnb.base import workbook
from osnb.book import report
from osnb.evidence import gallery
from osnb.teach import course

pytestmark = browser.MARKS


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the report of what is in git, with the claims that are decided in print."""
    with pytest.MonkeyPatch.context() as patch:
        printed = {"printed": report.claims.SIZES["printed"]}
        patch.setattr(report.claims, "SIZES", printed)  # resampling is not what is looked at
        patch.setattr(report, "verify", list)
        patch.setenv("OSNB_OUT", str(tmp_path_factory.mktemp("site")))
        return report.build().parent


def test_the_front_page_lists_all_artefacts_and_shows_their_pictures(site, page):
    page.goto(f"{site.as_uri()}/index.html")
    text = page.inner_text("body")
    wanted = gallery.artefacts(workbook.root()).drop_duplicates(["paper", "artefact"])
    assert len(wanted) == 44
    assert not [row.title for row in wanted.itertuples() if row.title.replace("'", "’") not in text]
    sizes = page.eval_on_selector_all(
        "img", "all => all.map(x => [x.src, x.naturalWidth, x.width])"
    )
    done = wanted[(wanted["run"] != "") & (wanted["kind"] == "figure")]
    assert len(sizes) == len(done) > 0
    assert not [src for src, natural, drawn in sizes if not natural or not drawn]
    assert (page.said, page.asked) == ([], [])


def test_every_page_leads_to_files_and_places_and_asks_no_server(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        assert [*lost(path, pages)] == asked(page) == [], path


def test_pages_open_from_the_folder_without_a_server(site, page):
    """All of the first folder, the longest of each other: one template and css make the rest."""
    pages = sorted(site.rglob("*.html"), key=lambda path: path.stat().st_size)
    for path in {*site.glob("*.html"), *{path.parent: path for path in pages}.values()}:
        page.goto(path.as_uri())
        broken = "all => all.filter(x => !x.naturalWidth).map(x => x.src)"
        assert page.eval_on_selector_all("img", broken) == [], path
        wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not page.evaluate(wide), f"{path} must be scrolled sideways"
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
def opened(tmp_path):
    """What `make lab` opens, the learner's folder, with the settings it writes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    words = ["make", "-C", str(workbook.root()), "--dry-run", "lab"]
    plan = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "overrides.json").write_text(re.search(r"echo '(.+)' >", plan)[1])
    url = re.search(r"--LabApp.default_url=\S+", plan)[0]
    course.learn(tmp_path / "learn")
    words = (f"--ServerApp.root_dir={tmp_path}/learn", f"--LabApp.app_settings_dir={tmp_path}/app")
    with browser.serving(tmp_path, *words, url) as (address, token):
        yield f"{address}/?token={token}"


def test_make_lab_opens_the_index_as_a_page_whose_links_open_notebooks(opened, page):
    page.goto(opened)
    page.wait_for_selector(".jp-MarkdownViewer h1", timeout=browser.START * 1000)
    assert "/lab/tree/README.md" in page.url
    assert page.locator(".jp-FileEditor").count() == 0
    names = sorted(path.stem for path in (workbook.root() / "notebooks").glob("*.ipynb"))
    rows = page.locator(".jp-MarkdownViewer table").first.locator("tbody tr")
    assert rows.locator("td:first-child").all_inner_texts() == names
    if browser.SHOTS:
        page.screenshot(path=f"{browser.SHOTS}/index.png")
    page.locator(f'.jp-MarkdownViewer a:text-is("{names[0]}")').first.click()
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=browser.START * 1000)
    page.wait_for_function(
        browser.IDLE, timeout=browser.START * 1000
    )  # a server does not end while one starts
    assert (page.said, page.asked) == ([], [])
