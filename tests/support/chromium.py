"""A real Chromium that tests control with keys and clicks, and read as displayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

BROWSER = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
DEADLINE_SECONDS = 30.0
REPLACED = "does not belong to the document"
"""Part of another error that Chromium reports instead of `StaleElementReferenceException` if the page was replaced."""
_SCRIPT_SECONDS = 110.0
"""The timeout of a script. For a page with many elements, axe needs seconds, and more on a busy machine. The default is 30 s.

Selenium waits 120 s for a response of the driver.
"""
_TABS = 80


def start() -> webdriver.Chrome:
    """Start Chromium without a window and without name resolution, so that pages can load nothing from other hosts."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in (
        "--headless=new",
        "--no-sandbox",  # The tests may run as root.
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.timeouts = {"script": int(_SCRIPT_SECONDS * 1_000)}
    return webdriver.Chrome(options=options, service=Service(str(DRIVER)))


class Browser:
    """One tab that displays one service."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def fresh(self) -> None:
        """Reset the browser: no cookie, the width of a desktop, light mode, empty logs."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        self.scripts(allowed=True)
        self.shape(1200, 850)
        self.colours("light")
        self._log("performance")
        self._log("browser")

    def shape(self, width: int, height: int) -> None:
        """Set the size of the page in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        """Set the preferred colour scheme: light or dark."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def scripts(self, *, allowed: bool) -> None:
        """Permit or forbid scripts of pages."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def go(self, path: str) -> None:
        """Open a page of the service."""
        self.driver.get(self.url + path)

    def sign_in(self, key: str) -> None:
        """Sign in through the form and wait for the list of workspaces."""
        self.go("/ui/sign-in")
        self.find("#key").send_keys(key, Keys.ENTER)
        self.until(lambda: self.heading == "Workspaces")

    @property
    def path(self) -> str:
        """Return the path in the address bar."""
        return self.driver.current_url.removeprefix(self.url)

    @property
    def heading(self) -> str:
        found = self.driver.find_elements(By.CSS_SELECTOR, "h1")
        return found[0].text if found else ""

    @property
    def text(self) -> str:
        """Return all text that the page displays."""
        return self.find("body").text

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the displayed text of each matching element, in one call: a live page can replace elements between calls."""
        texts: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(element => element.checkVisibility() ? element.innerText.trim().replaceAll('\\t', ' ') : '')",
            selector,
        )
        return texts

    def click(self, words: str) -> None:
        """Click the link, button or menu with this text."""
        path = f"//*[self::a or self::button or self::summary][normalize-space()={json.dumps(words)}]"
        self.driver.find_element(By.XPATH, path).click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def tab_to(self, words: str) -> WebElement:
        """Press Tab until the focused element has this text. Fail if the focus of an element is not visible."""
        seen = []
        for _ in range(_TABS):
            self.press(Keys.TAB)
            name = (self.focused.text or self.focused.get_attribute("aria-label") or "").strip()
            seen.append(name)
            assert self.run("return getComputedStyle(arguments[0]).outlineStyle", self.focused) != "none" or self.run(
                "return getComputedStyle(arguments[0], '::after').outlineStyle", self.focused
            ) not in {"none", ""}, f"the focus of '{name}' is not visible"
            if name.startswith(words):
                return self.focused
        raise AssertionError(f"Tab never comes to '{words}', only to {seen}")

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def until(self, holds: Callable[[], T], *, seconds: float = DEADLINE_SECONDS) -> T:
        """Wait until the condition holds; fail at the deadline."""

        def look(_driver: object) -> T | None:
            try:
                return holds()
            except StaleElementReferenceException:
                return None
            except WebDriverException as error:
                if REPLACED not in str(error):  # another error about a stale element
                    raise
                return None

        return WebDriverWait(self.driver, seconds, 0.05).until(look)  # type: ignore[return-value]

    def requested(self) -> list[str]:
        """Return the addresses that pages requested since the last call."""
        entries = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [
            entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return the browser's warnings and errors, such as violations of the content security policy, without hints."""
        return [entry["message"] for entry in self._log("browser") if entry["level"] != "DEBUG"]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        """Return the new lines of one of the browser's logs."""
        entries: list[dict[str, Any]] = self.driver.execute("getLog", {"type": kind})["value"]
        return entries
