"""The grid of entries by keyboard: edit, move, undo, conflicts; what the service stores is checked by the API."""

from __future__ import annotations

from typing import Any

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MakeKey, Service, api
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser


def stored(service: Service, sink: str) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in service.http.get(api(sink)).json()["entries"]}


def to_grid(browser: Browser) -> None:
    """Press Tab until a cell of the grid has the focus."""
    for _ in range(60):
        browser.press(Keys.TAB)
        if browser.focused.tag_name == "td":
            return
    raise AssertionError("Tab does not reach the grid")


def said(browser: Browser, words: str) -> None:
    browser.until(lambda: words in browser.find("#done").text)


def test_values_are_edited_by_keyboard_and_undone(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1", "b": "2", "c": "3"})
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    to_grid(signed_in)
    signed_in.press(Keys.ENTER, Keys.BACKSPACE, "1.50", Keys.ENTER)  # saves and goes down
    said(signed_in, "a = 1.50: saved")
    signed_in.until(lambda: signed_in.focused.tag_name == "td" and signed_in.focused.text == "2")
    signed_in.press("7", Keys.ESCAPE)
    assert signed_in.focused.text == "2"
    signed_in.press("8", Keys.TAB)  # a typed letter replaces the value; Tab saves and goes right
    said(signed_in, "b = 8: saved")
    signed_in.until(lambda: signed_in.focused.get_attribute("data-label") == "Type")
    signed_in.press(Keys.ARROW_DOWN, Keys.ARROW_LEFT)
    assert signed_in.focused.text == "3"
    signed_in.press(Keys.DELETE)
    said(signed_in, "c deleted: saved")
    assert stored(service, sink) == {"a": "1.50", "b": "8"}
    for words, left in (
        ("c deleted", {"a": "1.50", "b": "8", "c": "3"}),
        ("b = 8", {"a": "1.50", "b": "2", "c": "3"}),
        ("a = 1.50", {"a": "1", "b": "2", "c": "3"}),
    ):
        ActionChains(signed_in.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
        said(signed_in, f"Undone: {words}")
        assert stored(service, sink) == left
    assert not signed_in.find("#undo").is_displayed()
    assert signed_in.complaints() == []


def test_a_change_of_another_user_is_shown_beside_the_own_one(
    signed_in: Browser, service: Service, make_key: MakeKey
) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press(Keys.ENTER, "0")
    service.write(sink, "a", "99")  # the live update leaves the row alone that is edited
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: "It is now “99”" in signed_in.find("#entries").text)
    assert stored(service, sink) == {"a": "99"}
    signed_in.press(Keys.ENTER)
    said(signed_in, "a = 10: saved")
    assert stored(service, sink) == {"a": "10"}
    service.write(sink, "a", "11")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(2)") == ["11"])
    signed_in.find("#undo").click()
    said(signed_in, "Not undone")
    assert stored(service, sink) == {"a": "11"}


def test_mistakes_stay_beside_the_cell_and_the_field(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press(Keys.ARROW_RIGHT, Keys.ENTER, " ?", Keys.ENTER)
    signed_in.until(lambda: "must be a letter" in signed_in.find("#entries .error").text)
    assert signed_in.focused.get_attribute("aria-invalid") == "true"
    signed_in.press(Keys.ESCAPE)
    assert signed_in.texts("#entries td:nth-child(3)") == ["scalar"]
    signed_in.click("Add")
    signed_in.find("#new-key").send_keys("a", Keys.TAB, "5", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts("#new-key-error") == ["This data sink has an entry with this key already."])
    signed_in.find("#new-key").send_keys("b", Keys.ENTER)
    said(signed_in, "ab added: saved")
    assert stored(service, sink) == {"a": "1", "ab": "5"}
    signed_in.find("#new-key").send_keys("a", Keys.ENTER)
    signed_in.until(lambda: signed_in.texts("#new-key-error") == ["This data sink has an entry with this key already."])
    assert signed_in.texts("#done") == [""], "nothing says that it was saved"
    assert signed_in.find("#new-key").size["width"] > 200, "the sentence is below the field"


def test_the_undo_of_a_deletion_restores_the_line_ends(signed_in: Browser, service: Service) -> None:
    entries: dict[str, str | None] = {"dos": "a\r\nb\rc\nd"}
    sink = service.sink(service.workspace(), entries)
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press(Keys.DELETE)
    said(signed_in, "dos deleted: saved")
    signed_in.find("#undo").click()
    said(signed_in, "Undone: dos deleted")
    assert stored(service, sink) == entries


def test_actions_can_be_undone_although_the_storage_of_the_browser_is_full(
    signed_in: Browser, service: Service
) -> None:
    long = "0123456789" * 4_000
    sink = service.sink(service.workspace(), {"a": "1", "b": long, "c": long})
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press("2", Keys.ENTER)
    said(signed_in, "a = 2: saved")
    left = "let size = 8_000_000; for (; size > 60_000; size -= 20_000) "
    left += "try { sessionStorage.setItem('other', '.'.repeat(size)); break; } catch { }"
    signed_in.run(f"{left} sessionStorage.setItem('other', '.'.repeat(size - 60_000));")
    signed_in.until(lambda: signed_in.focused.tag_name == "td")
    signed_in.press(Keys.DELETE)
    said(signed_in, "b deleted: saved")
    signed_in.until(lambda: signed_in.focused.tag_name == "td")
    signed_in.press(Keys.DELETE)
    said(signed_in, "c deleted: saved")
    signed_in.find("#undo").click()
    said(signed_in, "Undone: c deleted")
    assert stored(service, sink) == {"a": "2", "c": long}
    assert not signed_in.find("#undo").is_displayed(), "the older actions had to be forgotten"


def test_an_undo_is_kept_until_the_user_has_signed_in_again(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press("2", Keys.ENTER)
    said(signed_in, "a = 2: saved")
    signed_in.driver.delete_all_cookies()
    signed_in.find("#undo").click()
    said(signed_in, "Not undone (a = 2): You are signed out")
    signed_in.sign_in(service.key)
    signed_in.go(sink)
    signed_in.find("#undo").click()
    said(signed_in, "Undone: a = 2")
    assert stored(service, sink) == {"a": "1"}


def test_a_reader_has_no_grid(browser: Browser, service: Service, make_key: MakeKey) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    browser.sign_in(make_key("reader.of.grids", "reader"))
    browser.go(sink)
    assert browser.texts("#entries td:nth-child(2)") == ["1"]
    assert browser.driver.find_elements("css selector", "[role=grid], #add, #undo, td[tabindex]") == []


def test_several_rows_are_selected_changed_and_restored(signed_in: Browser, service: Service) -> None:
    entries: dict[str, str | None] = {key: str(number) for number, key in enumerate("abcdef")}
    sink = service.sink(service.workspace(), entries)
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    assert not signed_in.find("#selection").is_displayed()
    to_grid(signed_in)
    signed_in.press(Keys.SPACE, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    ActionChains(signed_in.driver).key_down(Keys.SHIFT).send_keys(Keys.SPACE).key_up(Keys.SHIFT).perform()
    assert signed_in.texts("#selected") == ["3 selected"]
    ActionChains(signed_in.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    assert signed_in.focused.get_attribute("id") == "replaced"
    service.write(sink, "f", "9")  # a live update leaves the selection as it is
    signed_in.until(lambda: "9" in signed_in.texts("#entries td:nth-child(2)"))
    assert signed_in.texts("#selected") == ["3 selected"]
    signed_in.press(*[Keys.TAB] * 3)
    assert signed_in.focused.get_attribute("id") == "selected-type"
    ActionChains(signed_in.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    signed_in.press("text", Keys.ENTER)
    said(signed_in, "3 changed: saved")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(3)") == ["text"] * 3 + ["scalar"] * 3)
    signed_in.until(lambda: signed_in.focused.tag_name == "td")
    ActionChains(signed_in.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    said(signed_in, "Undone: 3 changed. 3 undone.")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(3)") == ["scalar"] * 6)

    signed_in.find("thead .row-box").click()
    signed_in.find("#entries .row-box").click()
    assert signed_in.texts("#selected") == ["5 selected"]
    assert axe_findings(signed_in) == []
    signed_in.click("Delete")
    said(signed_in, "5 deleted: saved")
    assert stored(service, sink) == {"a": "0"}
    signed_in.find("#undo").click()
    said(signed_in, "5 undone.")
    assert stored(service, sink) == {**entries, "f": "9"}
    assert signed_in.complaints() == []


def test_several_rows_are_deleted_and_restored_without_scripts(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1", "b": "2", "c": "3"})
    signed_in.scripts(allowed=False)
    signed_in.go(sink)
    first, second, _ = signed_in.driver.find_elements("css selector", "#entries .row-box")
    first.click()
    second.click()
    signed_in.find("#selection [value=delete]").click()
    signed_in.until(lambda: signed_in.texts("#done") == ["2 deleted."])
    assert stored(service, sink) == {"c": "3"}
    signed_in.click("Undo")
    signed_in.until(lambda: signed_in.texts("#done") == ["2 undone."])
    assert stored(service, sink) == {"a": "1", "b": "2", "c": "3"}


PASTE = """
const copied = new DataTransfer();
copied.setData("text/plain", arguments[0]);
document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: copied, bubbles: true, cancelable: true }));
"""


def test_a_block_from_a_spreadsheet_is_pasted_with_a_preview(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace(), {"a": "1", 'b"': "2", "c": "3", "d": "4"})
    signed_in.go(sink)
    to_grid(signed_in)
    signed_in.press(Keys.ARROW_DOWN)
    signed_in.run(PASTE, "7\n8\n9\n10\n")
    said(signed_in, "Not pasted: the block has 4 rows, and this page has 3 from this one on.")
    signed_in.run(PASTE, '20\r\n\r\n"x\ny"\r\n')
    signed_in.until(lambda: signed_in.texts(".counts li")[:2] == ["0 new", "3 changed"])
    signed_in.find("button[name=apply]").click()
    signed_in.until(lambda: signed_in.texts("h1") == ["Imported entries of Masses"])
    assert axe_findings(signed_in) == []
    assert stored(service, sink) == {"a": "1", 'b"': "20", "c": "", "d": "x\ny"}
    signed_in.click("Show the data sink")
    signed_in.until(lambda: signed_in.texts("#undo") == ["Undo: 3 imported"])
    to_grid(signed_in)
    signed_in.run(PASTE, "e\t5\nf\t6\n")
    signed_in.until(lambda: signed_in.texts(".counts li")[:2] == ["2 new", "0 changed"])
    assert axe_findings(signed_in) == []
    assert signed_in.complaints() == []
