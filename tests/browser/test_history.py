from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MakeKey, Service, api
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser


def _recorded(service: Service, changes: int = 1_000) -> str:
    """Return the page of a new sink with a history."""
    sink = service.sink(service.workspace())
    address = api(sink, "data-sink-history")
    assert service.http.patch(address, json={"changes": changes}).status_code == 200
    return sink


def test_a_user_turns_the_history_on_and_sees_who_changed_a_value(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"tank/mass": "1 kg"})
    signed_in.go(f"{sink}/history")
    assert "No history of this data sink is kept." in signed_in.text
    signed_in.find("#changes").send_keys("1001")
    signed_in.find("#days").send_keys("7", Keys.ENTER)
    signed_in.until(lambda: "must be a whole number from 0 to 1000" in signed_in.find("#refused").text)
    assert axe_findings(signed_in) == []
    assert signed_in.find("#days").get_attribute("value") == "7", "a mistake loses nothing"
    assert all("400 (Bad Request)" in one for one in signed_in.complaints())
    signed_in.find("#changes").clear()
    signed_in.find("#changes").send_keys("100")
    signed_in.click("Save")
    signed_in.until(lambda: "Up to 100 changes" in signed_in.text)
    for value in ("2 kg", "5 kg", "4 kg"):
        service.write(sink, "tank/mass", value)
    signed_in.go(f"{sink}/entries/tank%2Fmass")
    signed_in.click("History of this entry")
    signed_in.until(lambda: signed_in.heading.startswith("History of"))
    assert signed_in.texts("tbody td[data-label=After]") == ["4 kg", "5 kg", "2 kg"]
    assert signed_in.texts("tbody td[data-label=Before]")[2] == "1 kg"
    assert "anna.lind" in signed_in.texts("tbody td[data-label=By]")[0]
    assert "4 values in kg, from 1 kg to 5 kg" in signed_in.text
    assert signed_in.find("svg[role=img]").size["height"] > 100
    zone: Any = signed_in.run("return [...document.querySelectorAll('time.local')].map(time => time.textContent)")
    assert all("GMT" in text or "UTC" in text for text in zone)
    assert signed_in.complaints() == []


def test_a_chart_has_gaps_and_a_history_without_a_chart_says_why(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"units": "1 kg", "gap": "1", "text": "a"})
    address = api(sink, "data-sink-history")
    assert service.http.patch(address, json={"changes": 10}).status_code == 200
    for key, values in (("units", ("2 kg", "3 g")), ("gap", ("2", "broken", "3")), ("text", ("b", "c"))):
        for value in values:
            service.write(sink, key, value)
    for key, charts, shown in (("units", 0, 1), ("gap", 1, 0), ("text", 0, 0)):
        signed_in.go(f"{sink}/entries/{key}/history")
        assert len(signed_in.driver.find_elements("css selector", "figure")) == charts, key
        sentence = "There is no chart, because the values are numbers in several units."
        assert signed_in.text.count(sentence) == shown, key
    signed_in.go(f"{sink}/entries/gap/history")
    assert "3 values, from 1 to 3, and 1 without a number, which is a gap." in signed_in.text
    parts: Any = signed_in.run(
        "return document.querySelector('path[data-readings]').getAttribute('d').split('M').length - 1"
    )
    assert parts == 2


def test_a_user_plots_two_keys_reads_values_and_zooms(signed_in: Browser, service: Service) -> None:
    sink = _recorded(service)
    for number in range(6):
        service.write(sink, "tank/mass", f"{number} kg")
        service.write(sink, "tank/heat", f"{280 + number} K")
    signed_in.go(f"{sink}/plot")
    signed_in.press("tank/mass", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts(".legend tbody th") == ["tank/mass"])
    signed_in.find("#add-key").send_keys("tank/heat", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts(".legend tbody th") == ["tank/mass", "tank/heat"])
    units: Any = signed_in.run("return [...document.querySelectorAll('.area .unit')].map(unit => unit.textContent)")
    assert units == ["kg", "K"]
    dashes: Any = signed_in.run(
        "return [...document.querySelectorAll('path[data-key]')].map(path => getComputedStyle(path).strokeDasharray)"
    )
    assert len(set(dashes)) == 2, "the lines differ by more than their colours"
    assert len(signed_in.texts("#values tbody tr")) == 12

    area = signed_in.tab_to("Values of the chart")
    signed_in.press(Keys.END)
    assert signed_in.texts(".reading .value") == ["5 kg", "285 K"]
    signed_in.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert signed_in.texts(".reading .value") == ["4 kg", "284 K"]
    signed_in.press(Keys.HOME)
    assert signed_in.texts(".reading .value") == ["0 kg", "not known"]
    signed_in.press(Keys.ENTER, Keys.END)
    assert signed_in.find(".part").is_displayed()
    signed_in.press(Keys.ESCAPE)
    assert not signed_in.find(".reading").is_displayed()
    signed_in.press(Keys.HOME, Keys.ENTER, Keys.END, Keys.ENTER)
    signed_in.until(lambda: "Show all" in signed_in.texts(".range a"))
    assert signed_in.focused.get_attribute("role") == "slider", "the keyboard stays in the chart"
    signed_in.tab_to("Show all")
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: "Show all" not in signed_in.texts(".range a"))
    area = signed_in.find(".cover")

    ActionChains(signed_in.driver).move_to_element(area).perform()
    signed_in.until(lambda: len(signed_in.texts(".reading .value")) == 2)
    drag = ActionChains(signed_in.driver).move_to_element(area).click_and_hold()
    drag.move_by_offset(int(area.size["width"]) * 2 // 5, 0).release().perform()
    signed_in.until(lambda: "Show all" in signed_in.texts(".range a"))
    assert "from=" in signed_in.path
    assert "to=" in signed_in.path
    assert len(signed_in.texts(".legend tbody th")) == 2
    zoomed = signed_in.path
    signed_in.click("Show all")
    signed_in.until(lambda: "Show all" not in signed_in.texts(".range a"))
    signed_in.driver.back()
    signed_in.until(lambda: signed_in.path == zoomed and "Show all" in signed_in.texts(".range a"))
    assert axe_findings(signed_in) == []
    assert signed_in.complaints() == []


def test_a_plot_is_changed_and_zoomed_without_scripts(signed_in: Browser, service: Service) -> None:
    sink = _recorded(service)
    for number in range(3):
        service.write(sink, "tank/mass", f"{number} kg")
        service.write(sink, "tank/heat", f"{280 + number} K")
    signed_in.scripts(allowed=False)
    signed_in.go(f"{sink}/plot?key=tank%2Fmass&key=tank%2Fheat")
    signed_in.find(".legend input[value='tank/heat']").click()
    signed_in.click("Show these keys")
    signed_in.until(lambda: "heat" not in signed_in.path and signed_in.texts(".legend tbody th") == ["tank/mass"])
    signed_in.click("Zoom in")
    signed_in.until(lambda: "from=" in signed_in.path and "Show all" in signed_in.texts(".range a"))


def test_rows_of_a_comparison_are_restored_by_keyboard_without_scripts(signed_in: Browser, service: Service) -> None:
    sink = _recorded(service)
    address = api(sink, "data-sink-history")
    for key in ("a", "b", "c"):
        service.write(sink, key, "1")
    since = service.http.get(f"{address}/entry/c").json()[0]["time"].rstrip("Z")
    for key in ("a", "b", "c"):
        service.write(sink, key, "2")
    signed_in.scripts(allowed=False)
    signed_in.go(f"{sink}/history?from={since}")
    for key in ("a", "b"):
        signed_in.tab_to(f"Restore {key}")
        signed_in.press(Keys.SPACE)
    service.write(sink, "b", "3")
    signed_in.press(Keys.ENTER)
    done = signed_in.until(lambda: signed_in.find("#done").text)
    assert done.startswith("1 restored as at")
    assert "1 not, because a later change would be lost" in done
    assert signed_in.find("tbody tr").text.split()[:5] == ["b", "1", "3", "by", "anna.lind"]


def test_two_moments_of_a_sink_are_compared_in_pages(signed_in: Browser, service: Service) -> None:
    sink = _recorded(service)
    for number in range(60):
        service.write(sink, f"k{number:02d}", str(number))
    signed_in.go(f"{sink}/history")
    assert signed_in.find("#from").get_attribute("value"), "the form begins with the first moment that is known"
    signed_in.click("Compare")
    signed_in.until(lambda: signed_in.texts("tbody th"))
    assert len(signed_in.texts("tbody th")) == 50
    assert set(signed_in.texts("tbody td[data-label=Before]")) == {"no entry"}
    signed_in.click("Next")
    signed_in.until(lambda: len(signed_in.texts("tbody th")) == 10)
    assert "Next" not in signed_in.texts(".pager a")
    signed_in.go(f"{sink}/history?from=2020-01-01T00:00:00")
    assert "The past is not known" in signed_in.text
    signed_in.go(f"{sink}/history?from=soon")
    assert "Write a moment as" in signed_in.text


def test_a_reader_sees_the_history_and_can_not_change_its_settings(
    browser: Browser, service: Service, make_key: MakeKey
) -> None:
    sink = _recorded(service)
    browser.sign_in(make_key("reader", role="reader"))
    browser.go(f"{sink}/history")
    assert "Compare two moments" in browser.text
    assert "What is kept" not in browser.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_of_the_history_can_be_read_on_a_phone(signed_in: Browser, service: Service, scheme: str) -> None:
    sink = _recorded(service)
    for value in ("1", "2", "v" * 3_000, "<b>", "\u202e"):
        service.write(sink, "k" * 255, value)
    for value in ("1 kg", "9 kg"):
        service.write(sink, "mass", value)
    signed_in.shape(360, 740)
    signed_in.colours(scheme)
    pages = [
        f"{sink}/history?from=2020-01-01T00:00",
        f"{sink}/entries/{'k' * 255}/history",
        f"{sink}/entries/mass/history",
    ]
    for page in pages:
        signed_in.go(page)
        too_wide: Any = signed_in.run(
            "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
        )
        assert (page, too_wide) == (page, 0)
        assert axe_findings(signed_in) == []


def test_the_audit_log_shows_who_did_what(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace("Audited")
    service.write(service.sink(workspace), "a", "1")
    signed_in.go("/ui/workspaces")
    signed_in.click("Audit log")
    signed_in.until(lambda: signed_in.heading == "Audit log")
    assert "workspace.created" in signed_in.text
    signed_in.go(f"/ui/audit?workspace={workspace}&action=data_sink.*")
    assert signed_in.texts("tbody td[data-label=Action]") == ["data_sink.entry.created", "data_sink.created"]
    assert "anna.lind" in signed_in.texts("tbody td[data-label=By]")[0]
    signed_in.go("/ui/audit?action=page_session.*")
    assert signed_in.texts("tbody td[data-label=Action]")[0] == "page_session.created"
    signed_in.shape(360, 740)
    assert signed_in.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert axe_findings(signed_in) == []


def test_a_key_that_may_not_read_the_audit_log_has_no_link_to_it(
    browser: Browser, service: Service, make_key: MakeKey
) -> None:
    browser.sign_in(make_key("reader", role="reader"))
    assert "Audit log" not in browser.texts("nav a")
    browser.go("/ui/audit")
    assert browser.texts("tbody tr") == []


def test_an_owner_of_one_workspace_chooses_it(browser: Browser, service: Service) -> None:
    workspace = service.workspace("Own")
    made = service.http.post("/v1/api-keys", json={"name": "one", "role": "owner", "workspaceId": workspace})
    browser.sign_in(made.json()["key"])
    browser.go("/ui/audit")
    assert "Choose a workspace." in browser.text
    browser.go(f"/ui/audit?workspace={workspace}")
    assert "workspace.created" in browser.text
