"""Pictures of the pages that people see most: ``python -m tests.browser.pictures FOLDER``.

A picture is a whole page at 1440, 1280 or 390 pixels, light or dark. The scene is a mass budget of 400 entries with a history,
and a daemon with a pipeline in each state. docs/figures/pages has pages before (left) and after (right) they put the data first.
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium import webdriver

from tests.browser.conftest import Service, api
from tests.browser.test_daemon_page import running_scene
from tests.support.chromium import Browser, start
from tests.support.workspaced_process import WorkspaceService, new_key

WIDTHS = {1440: 900, 1280: 800, 390: 844}
SCHEMES = ("light", "dark")
_LONGEST_PIXELS = 1_600
_COLOURS = 64
_PARTS = ("frame", "wheel-2", "wheel-10", "mast", "battery-pack", "motor-controller", "antenna-bracket-left")
_FIELDS = ("mass", "centre-of-gravity.x", "centre-of-gravity.y", "supplier", "margin")


def main(folder: Path) -> None:
    """Write a picture of each page, width and scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    driver = start()
    try:
        with tempfile.TemporaryDirectory() as data:
            with workspace_pages(Path(data) / "service", driver) as (browser, pages):
                take(browser, folder, "workspaced", pages)
            with daemon_pages(Path(data) / "daemon", driver) as (browser, pages):
                take(browser, folder, "ingestd", pages)
    finally:
        driver.quit()


def take(browser: Browser, folder: Path, program: str, pages: dict[str, str]) -> None:
    """Write the pictures of these pages, which are addresses by name."""
    for name, path in pages.items():
        for width, height in WIDTHS.items():
            for scheme in SCHEMES:
                browser.shape(width, height)
                browser.colours(scheme)
                browser.go(path)
                content = browser.run("return document.documentElement.scrollHeight")
                browser.shape(width, min(max(height, content), _LONGEST_PIXELS))
                taken = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
                picture = Image.open(BytesIO(b64decode(taken["data"]))).convert("RGB").quantize(_COLOURS)
                picture.save(folder / f"{program}-{name}-{width}-{scheme}.png", optimize=True)


@contextmanager
def workspace_pages(data: Path, driver: webdriver.Chrome) -> Iterator[tuple[Browser, dict[str, str]]]:
    """Run a service with a mass budget, and sign in."""
    key = new_key(data, name="anna.lind")
    with WorkspaceService(data, "--dev") as running, running.client(key) as http:
        service = Service(data=data, url=running.url, key=key, http=http)
        workspace = service.workspace("Rover")
        values: dict[str, str | None] = {
            f"segment-{segment}.{part}.{field}": f"{segment}.{part}"
            if field == "supplier"
            else f"{segment * 7 % 50 / 4}"
            for segment in range(1, 12)
            for part in _PARTS
            for field in _FIELDS
        }
        sink = service.sink(workspace, values, "Mass budget")
        history = api(sink, "data-sink-history")
        assert http.patch(history, json={"changes": 50, "days": 10}).status_code == 200
        measured = "segment-1.frame.mass"
        for number in range(24):
            service.write(sink, measured, f"{12 + number % 5 / 4 + number / 10}")
        service.sink(workspace, {}, "Thermal limits")
        service.block(workspace, "Chassis")
        browser = Browser(driver, running.url)
        browser.fresh()
        browser.sign_in(key)
        yield (
            browser,
            {
                "workspace": f"/ui/workspaces/{workspace}",
                "sink": sink,
                "entry": f"{sink}/entries/{measured}",
                "history": f"{sink}/entries/{measured}/history",
                "comparison": f"{sink}/history",
                "plot": f"{sink}/plot?key={measured}&key=segment-2.frame.mass",
                "import": f"{sink}/import",
                "files": f"/ui/workspaces/{workspace}/files",
                "webhook": "/ui/webhooks/new",
                "audit": "/ui/audit",
            },
        )


@contextmanager
def daemon_pages(folder: Path, driver: webdriver.Chrome) -> Iterator[tuple[Browser, dict[str, str]]]:
    """Run a daemon with a pipeline in each state."""
    folder.mkdir()
    with running_scene(folder, driver) as scene:
        scene.browser.fresh()
        yield (
            scene.browser,
            {
                "overview": "/",
                "pipeline": "/pipelines/masses",
                "held": f"/held/{scene.run}",
                "rejected": "/rejected",
                "file": "/files?name=masses.csv",
            },
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
