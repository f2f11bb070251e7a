"""Entries that a pipeline feeds: the pages warn before a change, by keyboard and pointer, and a sink can protect them."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Service, api
from tests.browser.test_grid import PASTE, said, stored, to_grid
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser

WARNING = (
    "The pipeline “bench-a3” wrote this entry, and overwrites your change when its source gives another value, or when a drift "
    "check repairs the difference."
)
SEVERAL = (
    "Pipelines wrote some of these entries, and overwrite your change when a source gives another value, or when a drift check "
    "repairs the difference."
)
REFUSAL = (
    "The entry 'a' was written from run-0001.csv row 2, pipeline bench-a3, and this data sink protects such entries."
)


def fed_sink(service: Service) -> str:
    """Return the address of a sink: a pipeline feeds the entries a and b, and none feeds c."""
    sink = service.sink(service.workspace(), {"c": "3"})
    origin = {"source": "bench", "file": "run-0001.csv", "pipeline": "bench-a3", "count": 2, "rowSteps": [2, 1]}
    body = {"entries": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}], "origins": [origin]}
    assert service.http.post(f"{api(sink)}/mass", json=body).status_code == 200
    return sink


def described(browser: Browser) -> str:
    """Return the description that assistive technology reads with the focused element."""
    text: str = browser.run(
        "return document.activeElement.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id))"
        ".filter((one) => one && !one.hidden).map((one) => one.textContent).join(' ')"
    )
    return text


def test_the_grid_warns_before_each_edit_and_deletion_of_a_fed_entry(signed_in: Browser, service: Service) -> None:
    sink = fed_sink(service)
    signed_in.go(sink)
    to_grid(signed_in)
    for value in ("10", "100"):  # after the first edit the value is no longer the pipeline's, and the key still is
        signed_in.press(Keys.ENTER)
        assert signed_in.texts("#cell-fed") == [WARNING]
        assert described(signed_in) == WARNING
        assert axe_findings(signed_in) == []
        signed_in.press("0", Keys.ENTER)
        said(signed_in, f"a = {value}: saved")
        signed_in.until(lambda: signed_in.focused.text == "2")
        signed_in.press(Keys.ARROW_UP)
    signed_in.press(Keys.DELETE)
    said(signed_in, f"{WARNING} Press Delete again to delete a.")
    signed_in.press(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.DELETE)  # another key takes the first press back
    said(signed_in, f"{WARNING} Press Delete again to delete a.")
    assert stored(service, sink) == {"a": "100", "b": "2", "c": "3"}
    signed_in.press(Keys.DELETE)
    said(signed_in, "a deleted: saved")
    assert stored(service, sink) == {"b": "2", "c": "3"}

    signed_in.press(Keys.ARROW_DOWN, Keys.ENTER)
    assert signed_in.focused.get_attribute("aria-label") == "Value of c"
    assert signed_in.texts("#cell-fed") == [""], "no pipeline feeds this entry"
    signed_in.press(Keys.ESCAPE, Keys.DELETE)
    said(signed_in, "c deleted: saved")
    assert stored(service, sink) == {"b": "2"}
    assert signed_in.complaints() == []


def test_several_rows_are_warned_of_once_before_the_action(signed_in: Browser, service: Service) -> None:
    sink = fed_sink(service)
    for scripts in (True, False):
        signed_in.scripts(allowed=scripts)
        signed_in.go(sink)
        first, second, third = signed_in.driver.find_elements("css selector", "#entries .row-box")
        third.click()
        assert "Pipelines" not in signed_in.text, "no pipeline feeds the selected entry"
        first.click()
        second.click()
        assert signed_in.find("#selection").text.count("Pipelines") == 1
        assert SEVERAL in signed_in.find("#selection [role=status]").text
        if scripts:
            assert axe_findings(signed_in) == []
    signed_in.scripts(allowed=True)
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.run(PASTE, "7\n8\n9\n")
    signed_in.until(lambda: signed_in.texts(".counts li")[:2] == ["0 new", "3 changed"])
    assert signed_in.texts("#fed") == [SEVERAL]
    assert axe_findings(signed_in) == []
    assert stored(service, sink) == {"a": "1", "b": "2", "c": "3"}
    assert signed_in.complaints() == []


def test_the_settings_of_a_sink_protect_fed_entries(signed_in: Browser, service: Service) -> None:
    sink = fed_sink(service)
    signed_in.go(f"{sink}/edit")
    box = signed_in.find("[name=protectFedEntries]")
    for _ in range(40):
        if signed_in.focused == box:
            break
        signed_in.press(Keys.TAB)
    signed_in.press(" ")
    assert axe_findings(signed_in) == []
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: signed_in.path == sink)
    assert service.http.get(api(sink), params={"origin": "true"}).json()["protectFedEntries"] is True

    to_grid(signed_in)
    signed_in.press(Keys.ENTER)
    assert "this data sink protects it" in described(signed_in)
    signed_in.press("0", Keys.ENTER)
    signed_in.until(lambda: REFUSAL in signed_in.find("#cell-error").text)
    assert axe_findings(signed_in) == []
    signed_in.press(Keys.ESCAPE, Keys.DELETE)
    said(signed_in, f"a was not deleted: {REFUSAL}")
    signed_in.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER, "0", Keys.ENTER)
    said(signed_in, "c = 30: saved")
    assert stored(service, sink) == {"a": "1", "b": "2", "c": "30"}

    signed_in.go(f"{sink}/edit")
    box = signed_in.find("[name=protectFedEntries]")
    assert box.is_selected()
    box.click()
    signed_in.find("form.fields button[type=submit]").click()
    signed_in.until(lambda: signed_in.path == sink)
    to_grid(signed_in)
    signed_in.press(Keys.ENTER, "0", Keys.ENTER)
    said(signed_in, "a = 10: saved")
    assert [one for one in signed_in.complaints() if "422" not in one] == []
