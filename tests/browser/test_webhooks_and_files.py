from __future__ import annotations

import io

from PIL import Image
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser.conftest import Service
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser
from tests.support.webhook_receiver import StubResponse, WebhookReceiver


def test_a_failed_delivery_is_sent_again_by_its_button(signed_in: Browser, service: Service) -> None:
    with WebhookReceiver(StubResponse(status=500, body=b"<b>no</b>"), 200) as receiver:
        made = service.http.post("/v1/webhooks", json={"url": receiver.url, "label": "Nightly", "dataEvents": []})
        webhook = made.headers["Location"].rpartition("/")[2]
        signed_in.go("/ui/webhooks")
        signed_in.click("Nightly")
        signed_in.until(lambda: "Nothing has been sent yet." in signed_in.text)
        signed_in.click("Send a test event")
        first = receiver.next()
        signed_in.until(lambda: signed_in.heading.startswith("webhook.test"))
        signed_in.until(lambda: "<b>no</b>" in signed_in.text)
        assert signed_in.texts("h1 .state") == ["failed"]
        assert signed_in.texts(".notice.bad") == ["The last attempt failed; another attempt follows."]
        assert '"type": "webhook.test"' in signed_in.text
        signed_in.go(f"/ui/webhooks/{webhook}?status=failed")
        signed_in.click("Redeliver")
        again = receiver.next()
        assert again.headers["webhook-id"] == first.headers["webhook-id"]
        signed_in.until(lambda: signed_in.texts("h1 .state") == ["succeeded"])
        assert signed_in.texts(".notice") == ["Delivered."]
        assert len(signed_in.texts("tbody tr")) == 2
        signed_in.go(f"/ui/webhooks/{webhook}?status=failed")
        assert "None in this state." in signed_in.text


def test_a_webhook_is_managed_by_forms_and_by_keyboard(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace("Hooked")
    with WebhookReceiver(200) as receiver:
        signed_in.go("/ui/webhooks")
        signed_in.tab_to("New webhook")
        signed_in.press(Keys.ENTER)
        signed_in.until(lambda: signed_in.heading == "New webhook")
        signed_in.press("nowhere")
        signed_in.click("Create webhook")
        signed_in.until(lambda: bool(signed_in.texts("#url-error, #problem")))
        assert axe_findings(signed_in) == []
        signed_in.find("#url").clear()
        signed_in.find("#url").send_keys(receiver.url)
        assert not signed_in.find("#headers").is_displayed()
        signed_in.tab_to("More")
        signed_in.press(Keys.ENTER)
        Select(signed_in.find("#workspaceIds")).select_by_visible_text("Hooked")
        signed_in.find("#headers").send_keys("X-Bench: 7")
        signed_in.click("Create webhook")
        signed_in.until(lambda: signed_in.heading.startswith("127.0.0.1"))
        assert workspace in signed_in.text
        signed_in.click("Send a test event")
        assert receiver.next().headers["x-bench"] == "7"
        signed_in.click("127.0.0.1")
        signed_in.until(lambda: "Signing secret" in signed_in.text)
        signed_in.find(".secret summary").click()
        first = signed_in.find("#secret").get_attribute("value")
        signed_in.click("Make a new secret")
        signed_in.until(lambda: signed_in.find("#secret").get_attribute("value") != first)
        signed_in.click("Edit the webhook")
        signed_in.until(lambda: signed_in.heading == "Edit webhook")
        signed_in.find("[name=enabled]").click()
        signed_in.click("Save")
        signed_in.until(lambda: signed_in.texts("h1 .state") == ["disabled"])
        signed_in.click("Delete the webhook")
        signed_in.until(lambda: signed_in.heading == "Delete webhook")
        signed_in.click("Delete webhook")
        signed_in.until(lambda: signed_in.heading == "Webhooks")


def test_a_picture_has_a_thumbnail_and_a_download_and_can_be_converted_again(
    signed_in: Browser, service: Service
) -> None:
    workspace = service.workspace()
    picture = io.BytesIO()
    Image.new("RGB", (640, 480), "teal").save(picture, "PNG")
    made = service.http.post(
        "/v1/cloud-storage",
        params={"workspaceId": workspace, "fileName": "plan <1>.png"},
        content=picture.getvalue(),
        headers={"Content-Type": "image/png"},
    )
    assert made.status_code == 201, made.text
    signed_in.go(f"/ui/workspaces/{workspace}/files")
    signed_in.until(lambda: signed_in.texts("tbody .state") == ["succeeded"])
    signed_in.until(lambda: signed_in.run("return document.querySelector('img.thumb').naturalWidth") > 0)
    signed_in.click("plan <1>.png")
    signed_in.until(lambda: signed_in.heading == "plan <1>.png")
    bytes_came = signed_in.driver.execute_async_script(
        "fetch(arguments[0]).then((a) => a.arrayBuffer()).then((b) => arguments[1](b.byteLength))",
        signed_in.find("main .actions a[download]").get_attribute("href"),
    )
    assert bytes_came == len(picture.getvalue())
    signed_in.click("Convert again")
    signed_in.until(lambda: "attempt 2" in signed_in.text)
    signed_in.until(lambda: signed_in.texts("dd .state") == ["succeeded"])
    assert signed_in.texts(".notice") == ["The file is converted."]
