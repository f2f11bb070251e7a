"""Import a table and upload files in a real browser."""

from __future__ import annotations

from pathlib import Path

import openpyxl
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Service
from tests.support.chromium import Browser


def test_a_table_from_a_file_is_previewed_and_written(signed_in: Browser, service: Service, tmp_path: Path) -> None:
    sink = service.sink(service.workspace(), {"a": "1"})
    table = tmp_path / "masses.csv"
    table.write_text("key;value\na;2,5\nb;<b>\n", encoding="utf-8")
    signed_in.go(f"{sink}/import")
    signed_in.find("#file").send_keys(str(table))
    signed_in.until(lambda: "Press Preview" in signed_in.find("#file-status").text)
    signed_in.click("Preview")
    signed_in.until(lambda: signed_in.texts(".counts li") == ["1 new", "1 changed", "0 unchanged", "0 rejected"])
    signed_in.find("[name=comma]").click()
    signed_in.click("Preview again")
    signed_in.until(lambda: "2.5" in signed_in.texts("td[data-label='New value']"))
    button = signed_in.find("button[name=apply]")
    assert button.location["y"] < signed_in.find("main table").location["y"], "a long preview does not hide it"
    signed_in.click("Write 2 entries")
    said = "The table was written: 1 new, 1 changed, 0 unchanged, 0 rejected."
    signed_in.until(lambda: signed_in.texts(".notice") == [said])
    signed_in.click("Show the data sink")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(2)") == ["2.5", "<b>"])
    assert signed_in.find("#undo").text == "Undo: 2 imported"
    signed_in.find("#undo").click()
    signed_in.until(lambda: "2 undone." in signed_in.find("#done").text)
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(2)") == ["1"])

    signed_in.go(f"{sink}/import")
    signed_in.find("#table").send_keys("c;3")
    signed_in.click("Preview")
    signed_in.until(lambda: signed_in.texts(".counts li")[:1] == ["1 new"])
    signed_in.find("button[name=apply]").click()
    signed_in.until(lambda: signed_in.texts("#done")[:1] != [])
    signed_in.tab_to("Undo the import")
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: signed_in.texts("#done") == ["1 undone."])
    signed_in.click("Show the data sink")
    signed_in.until(lambda: signed_in.texts("#entries td:nth-child(2)") == ["1"])
    assert not signed_in.find("#undo").is_displayed()
    assert signed_in.complaints() == []


def test_a_workbook_with_several_sheets_says_which_one_is_imported(
    signed_in: Browser, service: Service, tmp_path: Path
) -> None:
    workbook, empty = openpyxl.Workbook(), tmp_path / "empty.csv"
    assert workbook.active is not None
    workbook.active.title = "Masses"
    workbook.active.append(["a", "1"])
    workbook.create_sheet("Budget").append(["b", "2"])
    workbook.save(tmp_path / "masses.xlsx")
    empty.write_text("")
    signed_in.go(f"{service.sink(service.workspace())}/import")
    signed_in.find("#file").send_keys(str(tmp_path / "masses.xlsx"))
    signed_in.until(lambda: "Press Preview" in signed_in.find("#file-status").text)
    assert signed_in.find("#file-status").text.startswith("The sheet “Masses” of masses.xlsx is in the field above.")
    assert "Not read: 1 further sheet" in signed_in.find("#file-status").text
    signed_in.find("#file").send_keys(str(empty))
    signed_in.until(lambda: signed_in.find("#file-status").text == "empty.csv is empty.")


def test_files_are_uploaded_with_their_outcome(signed_in: Browser, service: Service, tmp_path: Path) -> None:
    workspace = service.workspace()
    table, empty = tmp_path / "table 1.csv", tmp_path / ("n" * 250 + ".txt")
    table.write_text("part,mass\n7,0.10\n", encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    signed_in.go(f"/ui/workspaces/{workspace}/files")
    assert len(signed_in.texts(".empty")) == 1
    signed_in.find("#upload-files").send_keys(f"{table}\n{empty}")
    signed_in.until(lambda: signed_in.find("#upload-status").text != "")
    assert signed_in.texts("#uploads .hint, #uploads .error") == ["uploaded", "uploaded"]
    assert signed_in.texts("#files tbody th a") == [empty.name, table.name]
    assert signed_in.texts(".empty") == []
    signed_in.until(lambda: signed_in.texts("#files .state") == ["not required", "succeeded"])
    signed_in.click("table 1.csv")
    signed_in.until(lambda: signed_in.heading == "table 1.csv")
    signed_in.until(lambda: "0.10" in signed_in.texts(".preview td"))
    signed_in.click("Delete the file")
    signed_in.until(lambda: signed_in.heading == "Delete file")
    signed_in.click("Delete file")
    signed_in.until(lambda: signed_in.texts("tbody th a") == [empty.name])


DROP = """
const area = document.getElementById("upload");
window.seen = [];
new MutationObserver((changes) => { for (const one of changes) window.seen.push(one.target.value); })
  .observe(document.getElementById("uploads"), { attributes: true, attributeFilter: ["value"], subtree: true });
const dragged = new DataTransfer();
dragged.items.add(new File([new Uint8Array(arguments[0])], "dropped.bin"));
const event = (kind) => new DragEvent(kind, { dataTransfer: dragged, bubbles: true, cancelable: true });
document.body.dispatchEvent(event("dragenter"));
const marked = area.classList.contains("over");
document.body.dispatchEvent(event("drop"));
return [marked, area.classList.contains("over")];
"""


def test_a_dropped_file_is_uploaded_with_its_progress(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace()
    size = 4_000_000
    signed_in.go(f"/ui/workspaces/{workspace}/files")
    assert signed_in.run(DROP, size) == [True, False], "the area is marked until the file is dropped"
    signed_in.until(lambda: signed_in.texts("#uploads .hint, #uploads .error") == ["uploaded"])
    progress = signed_in.run("return window.seen")
    assert progress[-1] == 1
    assert progress == sorted(progress)
    (file,) = service.http.get("/v1/cloud-storage", params={"workspaceId": workspace}).json()
    assert (file["fileName"], int(file["size"])) == ("dropped.bin", size)
    assert signed_in.complaints() == []


def test_a_dropped_folder_is_refused_as_such(signed_in: Browser, service: Service, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("text")
    signed_in.go(f"/ui/workspaces/{service.workspace()}/files")
    for kind in ("dragEnter", "dragOver", "drop"):
        dragged = {
            "items": [],
            "files": [str(tmp_path / "folder"), str(tmp_path / "file.txt")],
            "dragOperationsMask": 1,
        }
        event = {"type": kind, "x": 300, "y": 300, "data": dragged}
        signed_in.driver.execute_cdp_cmd("Input.dispatchDragEvent", event)
    signed_in.until(lambda: signed_in.find("#upload-status").text != "")
    assert signed_in.texts("#uploads .hint, #uploads .error") == [
        "not uploaded: it can't be read. It is a folder, or was changed or deleted meanwhile.",
        "uploaded",
    ]


FILES = [("a", 4_000_000), ("b", 4_000_000), ("c", 9)]


def test_an_upload_is_cancelled_by_keyboard_while_it_runs_and_while_it_waits(
    signed_in: Browser, service: Service
) -> None:
    workspace = service.workspace()
    signed_in.go(f"/ui/workspaces/{workspace}/files")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 100_000}
    signed_in.driver.execute_cdp_cmd("Network.enable", {})
    signed_in.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    try:
        signed_in.run(
            "add(['a', 'b', 'c'].map((name) => new File([new Uint8Array(name === 'c' ? 9 : 4_000_000)], name)));"
        )
        signed_in.tab_to("Cancel")
        signed_in.press(Keys.TAB, Keys.ENTER)
        signed_in.run("document.querySelector('#uploads button').focus()")
        signed_in.press(Keys.ENTER)
        signed_in.until(lambda: signed_in.find("#upload-status").text != "")
    finally:
        signed_in.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    assert signed_in.texts("#uploads .hint, #uploads .error") == ["cancelled: not uploaded"] * 2 + ["uploaded"]
    assert signed_in.texts("#upload-status") == ["Some files are not uploaded; the list says why."]
    files = service.http.get("/v1/cloud-storage", params={"workspaceId": workspace}).json()
    assert [file["fileName"] for file in files] == ["c"]
