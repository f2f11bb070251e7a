from __future__ import annotations

from tests.browser.conftest import MakeKey, Service
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser


def test_a_key_is_created_shown_once_rotated_and_revoked(signed_in: Browser, service: Service) -> None:
    signed_in.go("/ui/workspaces")
    signed_in.click("Keys")
    signed_in.until(lambda: signed_in.heading == "Keys")
    signed_in.find("summary").click()
    signed_in.find("#name").send_keys("svc:loader")
    signed_in.find("form .primary").click()
    signed_in.until(lambda: "was created" in signed_in.heading)
    secret = signed_in.find("#secret").get_attribute("value")
    assert secret
    shown = "const field = document.getElementById('secret'); return [field.selectionEnd - field.selectionStart, "
    assert signed_in.run(shown + "field.scrollWidth <= field.clientWidth]") == [len(secret), True]
    with_it = {"x-api-key": secret}
    assert service.http.get("/v1/workspace", headers=with_it).status_code == 200
    key = next(one for one in service.http.get("/v1/api-keys").json() if one["name"] == "svc:loader")

    signed_in.click("Back to the keys")
    signed_in.until(lambda: signed_in.heading == "Keys")
    assert secret not in signed_in.driver.page_source
    signed_in.shape(360, 740)
    assert signed_in.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert axe_findings(signed_in) == []
    signed_in.shape(1100, 800)
    row = f"form[action='/ui/keys/{key['id']}/"
    signed_in.run("for (const one of document.querySelectorAll('td details')) one.open = true")
    signed_in.find(f"{row}rotate'] option[value='0']").click()
    signed_in.find(f"{row}rotate'] button").click()
    signed_in.until(lambda: "was rotated" in signed_in.heading)
    rotated = signed_in.find("#secret").get_attribute("value")
    assert rotated not in {None, secret}
    signed_in.click("Back to the keys")
    signed_in.until(lambda: signed_in.heading == "Keys")
    signed_in.run("for (const one of document.querySelectorAll('td details')) one.open = true")
    signed_in.find(f"{row}revoke'] button").click()
    signed_in.until(lambda: f"/ui/keys/{key['id']}/revoke" not in signed_in.driver.page_source)
    assert service.http.get(f"/v1/api-keys/{key['id']}").json()["revokedAt"] is not None
    assert signed_in.complaints() == []


def test_a_mistake_keeps_what_was_written(signed_in: Browser) -> None:
    signed_in.go("/ui/keys")
    signed_in.find("summary").click()
    signed_in.find("#name").send_keys("svc:late")
    signed_in.run("document.getElementById('expires').value = '2020-01-01'")
    signed_in.find("form .primary").click()
    signed_in.until(lambda: signed_in.find("#wrong").text)
    assert signed_in.find("#name").get_attribute("value") == "svc:late"


def test_only_an_administrator_sees_keys(browser: Browser, make_key: MakeKey) -> None:
    browser.sign_in(make_key("editor", role="editor"))
    assert "Keys" not in browser.texts("nav a")
    browser.go("/ui/keys")
    assert browser.texts("tbody tr") == []
