from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MakeKey, Service
from tests.support.chromium import Browser


def test_a_key_signs_in_and_signing_out_ends_the_session(browser: Browser, service: Service) -> None:
    browser.go("/ui")
    assert browser.path.startswith("/ui/sign-in")
    assert browser.focused.get_attribute("id") == "key"
    browser.press(service.key, Keys.ENTER)
    browser.until(lambda: browser.path == "/ui/workspaces")
    assert "anna.lind" in browser.text
    assert browser.run("return document.cookie") == "", "no script can read the session"
    browser.click("Sign out")
    browser.until(lambda: browser.path == "/ui/sign-in")
    browser.go("/ui/workspaces")
    assert browser.heading == "Sign in"


def test_a_revoked_key_ends_open_sessions(browser: Browser, service: Service, make_key: MakeKey) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    key = make_key("leaver")
    browser.sign_in(key)
    browser.go(sink)
    browser.until(lambda: browser.find("#live").text == "Live")
    assert service.http.delete(f"/v1/api-keys/{key[4:12]}").status_code == 200
    browser.until(lambda: "You are signed out" in browser.find("#live").text)
    browser.go("/ui/workspaces")
    assert browser.heading == "Sign in"


def test_a_form_is_kept_while_its_user_signs_in_again(signed_in: Browser, service: Service) -> None:
    signed_in.go(f"/ui/workspaces/{service.workspace()}/new-sink")
    signed_in.find("#label").send_keys("Masses of the rover")
    signed_in.find("#description").send_keys("typed\nfor long")
    signed_in.driver.delete_all_cookies()
    signed_in.click("Create data sink")
    signed_in.until(lambda: signed_in.heading == "Signed out")
    form, tabs = signed_in.driver.current_window_handle, len(signed_in.driver.window_handles)
    signed_in.click("Sign in")
    signed_in.until(lambda: len(signed_in.driver.window_handles) > tabs)
    signed_in.driver.switch_to.window(signed_in.driver.window_handles[-1])
    signed_in.sign_in(service.key)
    signed_in.driver.close()
    signed_in.driver.switch_to.window(form)
    signed_in.driver.refresh()
    signed_in.until(lambda: signed_in.heading == "New data sink")
    assert signed_in.texts("[role=alert]") == [
        "This form is from another session, so nothing was saved. Check it, and send it again."
    ]
    assert signed_in.find("#description").get_attribute("value") == "typed\nfor long"
    signed_in.click("Create data sink")
    signed_in.until(lambda: signed_in.heading.startswith("Masses of the rover"))
