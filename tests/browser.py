"""Chromium and a JupyterLab server for the browser tests, both knowing nothing of the user."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import psutil
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROME = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *(["--no-sandbox"] if os.name == "posix" and os.getuid() == 0 else []),
]
START = RUN = 600  # seconds after which something hangs, however busy the machine is
IDLE = "document.querySelector('#jp-main-statusbar').textContent.includes('| Idle')"
SHOTS = os.environ.get("OSNB_SHOTS")  # a folder for screenshots, for people who want to look
# sharp, so that half as wide a page is what 200 % zoom shows
VIEW = {"viewport": {"width": 1400, "height": 1000}, "device_scale_factor": 2 if SHOTS else 1}
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROME, reason=f"no browser: none of {', '.join(BROWSERS)} is installed"
    ),
]


@contextmanager
def launched():
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROME, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def paged(browser, **view):
    """A page of a browser, which then shares nothing with others, or of a context of it, without
    `view`; `page.said` are its errors, `page.asked` what it fetched from afar."""
    page = browser.new_page(**view)
    page.set_default_timeout(START * 1000)
    page.said, page.asked = [], []
    page.on("console", lambda x: page.said.append(x.text) if x.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda x: None if _near(x.url) else page.asked.append(x.url))
    yield page
    page.close()


def _near(url):
    return url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:", "ws://127.0.0.1:"))


def free_port():
    """A port that none listens at, below those that systems give to whoever asks for any."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving(folder, *words):
    """(address, token) of a JupyterLab server whose own files are all in the folder."""
    port, token = free_port(), secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *words),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"),
        *("--LabApp.extension_manager=readonly", "--KernelManager.transport=ipc"),
        *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url="),
    ]
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    own = {name: str(folder / name) for name in (*places, "JUPYTERLAB_WORKSPACES_DIR", "OSNB_OUT")}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTER_TOKEN": token}
    with TemporaryDirectory(dir="/tmp") as runtime, (folder / "log").open("w") as log:
        own["JUPYTER_RUNTIME_DIR"] = runtime  # a socket's path must be short
        process = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
        try:
            _answers(f"http://127.0.0.1:{port}/api?token={token}", process, folder / "log")
            yield f"http://127.0.0.1:{port}", token
        finally:
            started = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:  # its shutdown of a kernel may wait for ever
                process.kill()
                process.wait()
                for child in started:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()


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


def until(page, look, seconds, complaint=""):
    """The first true value of `look()`, asked for again and again.

    Raises:
        AssertionError: it is still false after so many seconds; the text is `complaint()`.
    """
    end = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, complaint() if callable(complaint) else complaint
        page.wait_for_timeout(200)
    return seen
