from __future__ import annotations

import csv
import io

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser.conftest import Service, api
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser
from tests.support.workspaced_process import WorkspaceService

HOSTILE = {
    "<script>alert(1)</script>": "<img src=x onerror=alert(1)>",
    "a/b?c#d%2F": "=1+1",
    "k" * 255: "v" * 3_000,
    "rtl \u202e": "العربية \u202e 123",
    "quote\"'": "{{ 7 * 7 }} &amp; </td>",
    "empty": "",
    "nothing": None,
    "lines": "one\n  two",
}


def keys(browser: Browser) -> list[str]:
    return browser.texts("#entries th")


def test_a_user_can_navigate_from_the_workspaces_to_an_entry(signed_in: Browser, service: Service) -> None:
    service.sink(service.workspace("Lunar rover"), {"wheel.mass": "0.10"})
    signed_in.go("/ui/workspaces?search=LUNAR")
    for words in ("Lunar rover", "Masses", "wheel.mass"):
        signed_in.click(words)
        signed_in.until(lambda words=words: signed_in.heading.startswith(words))  # type: ignore[misc]
    assert "0.10" in signed_in.text
    assert signed_in.texts(".trail li") == ["Workspaces", "Lunar rover", "Masses", "wheel.mass"]


def test_a_long_sink_is_shown_in_pages(signed_in: Browser, service: Service) -> None:
    signed_in.go(service.sink(service.workspace(), {f"k{number:03d}": str(number) for number in range(230)}))
    assert "1\u2013100 of 230" in signed_in.text
    signed_in.click("Next")
    signed_in.until(lambda: "101\u2013200 of 230" in signed_in.text)
    assert keys(signed_in)[0] == "k100"
    signed_in.click("Next")
    signed_in.until(lambda: len(keys(signed_in)) == 30)
    signed_in.click("Previous")
    signed_in.until(lambda: keys(signed_in)[0] == "k100")


def test_searching_and_sorting_can_be_combined(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"b.mass": "1", "a.mass": "2", "a.cost": "3"})
    service.write(sink, "a.mass", "4")
    signed_in.go(sink)
    assert keys(signed_in) == ["a.cost", "a.mass", "b.mass"]
    signed_in.find("#search").send_keys("MASS", Keys.ENTER)
    signed_in.until(lambda: keys(signed_in) == ["a.mass", "b.mass"])
    signed_in.click("Sort")
    signed_in.click("Key, Z first")
    signed_in.until(lambda: keys(signed_in) == ["b.mass", "a.mass"])
    signed_in.click("Updated")
    signed_in.until(lambda: signed_in.texts("[aria-sort=descending]") == ["Updated ↓"])
    assert keys(signed_in) == ["a.mass", "b.mass"]
    signed_in.click("Show all")
    signed_in.until(lambda: len(keys(signed_in)) == 3)


def test_the_data_come_first_and_fit_the_screen(signed_in: Browser, service: Service) -> None:
    entries: dict[str, str | None] = {f"segment-{n}.antenna-bracket.mass": str(n) for n in (2, 10)}
    sink = service.sink(service.workspace(), {**entries, "note": "heavy", "k" * 255: "1"})
    for width, height, most in ((1280, 800, 220), (390, 844, 320)):
        signed_in.shape(width, height)
        signed_in.go(sink)
        signed_in.until(lambda: signed_in.find("#live").text == "Live")
        assert signed_in.run("return document.querySelector('#entries tr').getBoundingClientRect().top") <= most
        assert signed_in.run("return document.documentElement.scrollWidth - innerWidth") <= 0, width
    signed_in.shape(1280, 800)
    signed_in.go(sink)
    lines = (
        "return [...document.querySelectorAll('#entries th .line')].every(word => word.getClientRects().length === 1)"
    )
    assert signed_in.run(lines), "no word of a key is broken"
    found = "[...document.querySelectorAll('td')].find(cell => cell.innerText === arguments[0])"
    aligned = f"return getComputedStyle({found}).textAlign"
    assert (signed_in.run(aligned, "10"), signed_in.run(aligned, "heavy")) == ("end", "start")
    time = signed_in.find("#entries time")
    assert len(time.text) == len("11:01") or "yesterday" in time.text
    assert (time.get_attribute("title") or "").startswith("20")
    assert "1\u20134 of 4" in signed_in.text


def test_columns_rows_and_menus_are_changed_by_keyboard_and_pointer(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1", "b": "2"})
    signed_in.go(sink)
    high = signed_in.find("#entries tr").size["height"]
    signed_in.click("Columns")
    signed_in.find("#columns [name=By]").click()
    signed_in.find("#columns [value=compact]").click()
    signed_in.press(Keys.ESCAPE)
    assert not signed_in.find("#reset-widths").is_displayed()
    assert signed_in.focused.text == "Columns", "the focus returns to the menu"
    wide = signed_in.find("th[data-label=Key]").size["width"]
    signed_in.run("arguments[0].focus()", signed_in.find("th[data-label=Key] .handle"))
    signed_in.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    signed_in.go(sink)  # the browser keeps the choice
    assert signed_in.find("th[data-label=Key]").size["width"] == wide + 32
    assert signed_in.find("#entries tr").size["height"] < high
    assert signed_in.texts("#entries td[data-label=By]") == ["", ""]
    handle = signed_in.find("th[data-label=Key] .handle")
    ActionChains(signed_in.driver).drag_and_drop_by_offset(handle, 50, 0).perform()
    assert signed_in.find("th[data-label=Key]").size["width"] == wide + 82
    ActionChains(signed_in.driver).drag_and_drop_by_offset(handle, 600, 0).drag_and_drop_by_offset(
        handle, 200, 0
    ).perform()
    assert signed_in.run("return document.documentElement.scrollWidth <= innerWidth"), (
        "a column takes from the last one"
    )
    signed_in.click("Columns")
    signed_in.click("Widths by content")
    signed_in.press(Keys.ESCAPE, "?")
    assert "Shift+Enter" in signed_in.find("#help").text
    assert axe_findings(signed_in) == []
    signed_in.press("?", "/")
    assert signed_in.focused.get_attribute("id") == "search"
    assert signed_in.complaints() == []
    signed_in.run("localStorage.clear()")


def test_filters_are_an_address_that_can_be_shared(signed_in: Browser, service: Service) -> None:
    sink = service.sink(
        service.workspace(), {"part-10.mass": "9", "part-2.mass": "12.5", "part-2.note": "9 kg", "x": "3"}
    )
    signed_in.go(sink)
    signed_in.click("Filter")
    signed_in.find("#prefix").send_keys("part-")
    signed_in.find("#least").send_keys("5", Keys.ENTER)
    signed_in.until(lambda: keys(signed_in) == ["part-10.mass", "part-2.mass"])
    assert "1\u20132 of 2" in signed_in.text
    assert signed_in.texts(".badge")[0].split() == ["2", "set"]
    signed_in.click("Sort")
    signed_in.click("Key, 2 before 10")
    signed_in.until(lambda: keys(signed_in) == ["part-2.mass", "part-10.mass"])
    signed_in.click("Value")
    signed_in.until(lambda: keys(signed_in) == ["part-10.mass", "part-2.mass"])
    signed_in.go(signed_in.path)
    assert keys(signed_in) == ["part-10.mass", "part-2.mass"]
    assert signed_in.texts("[aria-sort=ascending]") == ["Value ↑"]
    service.write(sink, "part-3.mass", "10")
    signed_in.until(lambda: keys(signed_in) == ["part-10.mass", "part-3.mass", "part-2.mass"])
    signed_in.click("Show all")
    signed_in.until(lambda: len(keys(signed_in)) == 5)


def test_keys_fold_into_groups_without_scripts(browser: Browser, service: Service) -> None:
    entries: dict[str, str | None] = {f"rover.wheel-{n}/mass": str(n) for n in range(3)}
    sink = service.sink(service.workspace(), {**entries, "rover.mast.mass": "4", "rover.mast.cost": "5", "note": "x"})
    browser.scripts(allowed=False)
    browser.sign_in(service.key)
    browser.go(sink)
    browser.click("Groups")
    browser.until(lambda: browser.texts("tbody th") == ["note", "rover."])
    assert browser.texts("td[data-label=Entries]") == ["", "5"]
    browser.click("rover.")
    browser.until(lambda: browser.texts("tbody th")[0] == "mast.")
    assert browser.texts("tbody th") == ["mast.", "wheel-0/mass", "wheel-1/mass", "wheel-2/mass"]
    browser.click("mast.")
    browser.until(lambda: browser.texts("tbody th") == ["cost", "mass"])
    assert browser.texts("td[data-label=Value]") == ["5", "4"]
    browser.find(".views a").click()
    browser.until(lambda: browser.texts("#entries th") == ["rover.mast.cost", "rover.mast.mass"])


def test_a_new_entry_is_shown_and_announced(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"m": "1"})
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    signed_in.run("arguments[0].focus(); window.kept = arguments[0]", signed_in.find("#entries th a"))
    service.write(sink, "a", "new")
    signed_in.until(lambda: keys(signed_in) == ["a", "m"])
    assert "1 entry new or changed" in signed_in.find("#live").text
    assert signed_in.find("#live").get_attribute("aria-live") == "polite"
    assert "1\u20132 of 2" in signed_in.text
    assert signed_in.run("return document.activeElement === window.kept"), "the focus stays where it was"
    service.write(sink, "m", "2")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(2)") == ["new", "2"])


def test_a_change_by_another_process_is_shown(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace())
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    with WorkspaceService(service.data, "--dev") as other, other.client(service.key) as http:
        path = api(sink)
        assert http.post(f"{path}/mass", json={"key": "far", "value": "1"}).status_code == 200
        signed_in.until(lambda: keys(signed_in) == ["far"])


def test_updates_can_be_paused(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace())
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    signed_in.click("Pause updates")
    signed_in.until(lambda: signed_in.find("#live").text == "Paused")
    service.write(sink, "a", "1")
    signed_in.click("Resume updates")
    signed_in.until(lambda: keys(signed_in) == ["a"])


def test_a_search_that_has_found_nothing_so_far_goes_on_by_itself(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace()
    sink = service.sink(workspace, {f"k{number:03d}": f"steel {number}" for number in range(150)})
    for page, rows, found in (
        (f"{sink}?search=none", "#entries th", f"{sink}?search=k14"),
        (
            f"/ui/workspaces/{workspace}/search?search=none",
            "#found th[scope=row]",
            f"/ui/workspaces/{workspace}/search?search=k14",
        ),
    ):
        signed_in.go(page)
        assert signed_in.texts(rows) == []
        # As the page is after a part without a match; how much a part is depends on the speed of the machine.
        link = f'<a rel="next" data-goes-on href="{found}">Next</a>'
        signed_in.run("document.querySelector('#pager, #found').innerHTML = arguments[0]; searchOn();", link)
        signed_in.until(lambda rows=rows: len(signed_in.texts(rows)) == 10)  # type: ignore[misc]
        assert signed_in.path == found
    assert signed_in.complaints() == []


def test_copied_csv_has_every_value_exactly(signed_in: Browser, service: Service) -> None:
    entries = {"a": "=1+1", "b": 'say "hi",\nplease', "c": "0.10", "d": ""}
    signed_in.go(service.sink(service.workspace(), dict(entries)))
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": service.url}
    signed_in.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    signed_in.click("Export")
    signed_in.click("Copy as CSV")
    signed_in.until(lambda: "Copied" in signed_in.find("#live").text)
    copied = signed_in.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    rows = list(csv.DictReader(io.StringIO(copied, newline="")))
    assert {row["key"]: row["value"] for row in rows} == entries


def test_hostile_keys_and_values_are_shown_as_text(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace("<b>bold</b>"), dict(HOSTILE), label="</title><script>alert(1)</script>")
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    service.write(sink, "<script>live</script>", "<img src=y onerror=alert(2)>")
    signed_in.until(lambda: "<script>live</script>" in keys(signed_in))
    assert {key.strip() for key in HOSTILE} <= {key.strip() for key in keys(signed_in)}
    values = signed_in.texts("#entries td:nth-child(2)")
    assert "<img src=x onerror=alert(1)>" in values
    assert "<img src=y onerror=alert(2)>" in values
    assert "{{ 7 * 7 }} &amp; </td>" in values
    assert "null" in values
    assert "empty text" in values
    assert "one\n  two" in values
    assert any("2 600 more characters".replace(" ", "\u202f", 1) in value for value in values)
    assert signed_in.run("return document.querySelectorAll('main script, main img').length") == 0
    assert signed_in.complaints() == []


def test_without_scripts_everything_except_live_updates_and_copying_works(browser: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a.mass": "1", "b.cost": "2"})
    browser.scripts(allowed=False)
    browser.sign_in(service.key)
    browser.go(sink)
    assert not browser.find("#copy").is_displayed()
    browser.find("#search").send_keys("mass", Keys.ENTER)
    browser.until(lambda: keys(browser) == ["a.mass"])
    browser.click("Sign out")
    browser.until(lambda: browser.heading == "Sign in")


def test_lists_are_sorted_by_the_heads_of_their_columns(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace()
    for label in ("b", "c", "a"):
        service.sink(workspace, label=label)
    labels = "tbody th a"
    signed_in.go(f"/ui/workspaces/{workspace}")
    assert (signed_in.texts(labels), signed_in.texts("[aria-sort=ascending]")) == (["b", "c", "a"], ["Id ↑"])
    signed_in.tab_to("Id")
    signed_in.press(Keys.TAB, Keys.ENTER)
    signed_in.until(lambda: signed_in.texts(labels) == ["a", "b", "c"])
    signed_in.find("[aria-sort] a").click()
    signed_in.until(lambda: signed_in.texts(labels) == ["c", "b", "a"])
    signed_in.click("Changed")
    signed_in.until(lambda: signed_in.texts(labels) == ["a", "c", "b"])
    assert axe_findings(signed_in) == []
    for name, size in (("b.bin", 1), ("c.bin", 3), ("a.bin", 2)):
        upload = {"workspaceId": workspace, "fileName": name}
        assert service.http.post("/v1/cloud-storage", params=upload, content=b"." * size).status_code == 201
    signed_in.go(f"/ui/workspaces/{workspace}/files")
    assert signed_in.texts(labels) == ["a.bin", "b.bin", "c.bin"]
    signed_in.click("Size")
    signed_in.until(lambda: signed_in.texts(labels) == ["b.bin", "a.bin", "c.bin"])
    signed_in.click("Changed")
    signed_in.until(lambda: signed_in.texts(labels) == ["a.bin", "c.bin", "b.bin"])
    service.workspace("Sorted A")
    service.workspace("Sorted B")
    signed_in.go("/ui/workspaces")
    signed_in.find("#search").send_keys("Sorted")
    Select(signed_in.find("#sort")).select_by_visible_text("Changed, newest first")
    signed_in.click("Search")
    signed_in.until(lambda: signed_in.texts(".tiles a") == ["Sorted B", "Sorted A"])


def test_blocks_are_filtered_by_their_type(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace()
    for label, kind in (("Wheel 2", "part"), ("Wheel 1", "part"), ("Chassis", "<b>assembly</b>")):
        body = {"workspace": workspace, "label": label, "type": [kind]}
        assert service.http.post(f"/v1/workspace/{workspace}/blocks", json=body).status_code == 201
    signed_in.go(f"/ui/workspaces/{workspace}/blocks")
    signed_in.find("#type").send_keys("part", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts("main li > a") == ["Workspaces", "Wheel 1", "Wheel 2"])
    signed_in.find("#type").clear()
    signed_in.find("#type").send_keys("<b>assembly</b>", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts("main li > a") == ["Workspaces", "Chassis"])
    signed_in.find("#type").send_keys("?", Keys.ENTER)
    signed_in.until(lambda: "No block has the type “<b>assembly</b>?”." in signed_in.text)
    signed_in.click("Show the tree")
    signed_in.until(lambda: len(signed_in.texts(".leaf")) == 3)
