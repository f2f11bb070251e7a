"""The clicks and key presses that a person needs for a task in a browser."""

from __future__ import annotations

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.support.chromium import Browser

_TABS = 80


class CountedSteps:
    """Controls a browser, and counts steps: each click, and each key, also each key of a combination.

    Typed text is counted separately, because it costs the same on each page. Waiting, reading and scrolling are not counted.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.clicks = 0
        self.keys = 0
        self.typed = 0

    def __str__(self) -> str:
        return f"{self.clicks} clicks, {self.keys} keys, {self.typed} typed"

    @property
    def steps(self) -> int:
        """The number of clicks and keys, without typed text."""
        return self.clicks + self.keys

    def click(self, target: str | WebElement) -> None:
        """Click an element, or the element that a selector finds."""
        element = self._browser.find(target) if isinstance(target, str) else target
        ActionChains(self._browser.driver).move_to_element(element).click().perform()
        self.clicks += 1

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        self._browser.press(*keys)
        self.keys += len(keys)

    def chord(self, *keys: str) -> None:
        """Press keys together: modifiers, then one other key."""
        *modifiers, last = keys
        chain = ActionChains(self._browser.driver)
        for key in modifiers:
            chain.key_down(key)
        chain.send_keys(last)
        for key in reversed(modifiers):
            chain.key_up(key)
        chain.perform()
        self.keys += len(keys)

    def type(self, text: str) -> None:
        self._browser.press(text)
        self.typed += len(text)

    def tab_to(self, selector: str) -> None:
        """Press Tab until the element that the selector finds has the focus."""
        for _ in range(_TABS):
            self.press(Keys.TAB)
            if self._browser.focused == self._browser.find(selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")
