"""The page of the daemon in a real Chromium: every state, hostile names, actions, keyboard, and small screens."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser
from tests.support.daemon_process import Daemon, here
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import (
    HOSTILE_NAME,
    HOSTILE_TEXT,
    TOKEN,
    held_scene,
    hold_a_run,
    listening_daemon,
    pipeline,
    write_listening_configuration,
)

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A running daemon with a held run ``run``, a browser that has its token, and plain requests with it."""

    daemon: Daemon
    browser: Browser
    client: httpx.Client
    folder: Path
    run: int

    @property
    def paths(self) -> list[str]:
        return [
            "/", "/?state=held", "/?state=ok",
            "/pipelines/masses", "/pipelines/guarded", "/pipelines/hostile", "/rejected", "/rejected?file=none",
            "/held", f"/held/{self.run}", "/trace", "/trace?key=masses.1&steps=1", "/trace?key=none", "/files",
            "/files?name=masses.csv", "/files?name=none", "/drift", "/drift?pipeline=away", "/configuration", "/held/999",
            "/runs/1/rollback", "/runs/999/rollback",
        ]  # fmt: skip


@contextlib.contextmanager
def running_scene(folder: Path, driver: webdriver.Chrome) -> Iterator[Scene]:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = held_scene(folder, server.url, {"address": "127.0.0.1:0", "token": TOKEN})
        with listening_daemon(folder, config) as (daemon, client):
            client.auth = ("anna", TOKEN)
            run = hold_a_run(folder, daemon)
            address = str(client.base_url).rstrip("/").replace("http://", f"http://anna:{TOKEN}@")
            yield Scene(daemon=daemon, browser=Browser(driver, address), client=client, folder=folder, run=run)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, driver: webdriver.Chrome) -> Iterator[Scene]:
    with running_scene(tmp_path_factory.mktemp("page"), driver) as scene:
        yield scene


@pytest.fixture
def browser(scene: Scene) -> Browser:
    scene.browser.fresh()
    return scene.browser


def test_the_overview_shows_each_pipeline_with_its_state_and_reason(browser: Browser) -> None:
    browser.go("/")
    states = dict(zip(browser.texts("#rows th a"), browser.texts("#rows .state"), strict=True))
    assert states == {"masses": "attention", "guarded": "held", "hostile": "attention", "away": "unavailable"}
    assert "its share is not mounted" in browser.texts("#pipeline-away")[0]
    assert "1 file waits: empty" in browser.texts("#pipeline-masses")[0]


def test_what_needs_a_person_is_on_top_with_its_command_and_handled_by_keyboard(browser: Browser) -> None:
    browser.go("/")
    needs = browser.texts("#needs li")
    assert [one.split()[0] for one in needs] == ["unavailable", "attention", "attention", "held"]
    assert browser.texts("#needs code")[0] == "ingestd run away"
    browser.tab_to("Run now")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading.startswith("away"))
    assert "The daemon reads pipeline away now." in browser.text
    browser.go("/")
    browser.tab_to("Compare run")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading.endswith("of budget.csv"))


def test_a_filter_by_state_works_by_pointer_without_scripts_and_stays_while_the_page_is_live(browser: Browser) -> None:
    browser.scripts(allowed=False)
    try:
        browser.go("/")
        assert browser.texts("#states a") == ["All 4", "unavailable 1", "attention 2", "held 1"]
        browser.click("attention 2")
        browser.until(lambda: browser.texts("#rows th a") == ["masses", "hostile"])
    finally:
        browser.scripts(allowed=True)
    browser.go("/?state=held")
    browser.until(lambda: browser.find("#live").text == "Live")
    assert browser.texts("#rows th a") == ["guarded"]
    assert browser.texts("#states a[aria-current]") == ["held 1"]
    assert len(browser.texts("#needs li")) == 4, "a filter hides no condition"


def test_the_overview_shows_a_change_without_a_reload(browser: Browser, scene: Scene) -> None:
    browser.go("/")
    browser.until(lambda: browser.find("#live").text == "Live")
    (scene.folder / "away").mkdir(exist_ok=True)
    (scene.folder / "away" / ".mounted").write_text("")
    assert (
        here(scene.folder, "run", "away").returncode == 0
    )  # the daemon retries it by itself only after up to a minute
    browser.until(lambda: re.search(r"\b(ok|waiting)\b", browser.find("#pipeline-away").text))
    (scene.folder / "away" / ".mounted").unlink()
    assert here(scene.folder, "run", "away").returncode == 0
    browser.until(lambda: "unavailable" in browser.find("#pipeline-away").text)
    browser.press(*[Keys.TAB] * 3)
    browser.find("#find").send_keys("guard")
    browser.until(lambda: browser.texts("#rows th a") == ["", "guarded", "", ""] or "masses" not in browser.text)


def test_a_pipeline_shows_its_runs_and_the_files_that_wait_with_their_reasons(browser: Browser) -> None:
    browser.go("/pipelines/masses")
    assert "empty.csv is empty; it is read once it has content" in browser.text
    # Another test may have had the file read again, and that run is the first row.
    assert any("3 2 0 0 1" in " ".join(row.split()) for row in browser.texts(".runs tbody tr")), browser.texts(
        ".runs tbody tr"
    )
    steps = browser.texts(".flow li")
    assert [step.split("\n")[0] for step in steps] == ["Source", "Read", "Mapped", "Delivered", "Sink"]
    assert "1 waiting" in steps[0]
    assert re.search(r"^[36] records since start$", steps[1], re.MULTILINE), "another test has it read again"
    assert "1 rejected" in steps[2]
    assert "2 entries since start" in steps[3]
    assert "2 entries" in steps[4]
    assert "Sink masses in Bench" in steps[4]
    browser.click("masses.csv")
    assert "masses.csv was read" in browser.find(".card").text
    life = browser.texts(".life li .name")
    assert life[-2:] == ["Delivered", "Now"]
    assert {"Changed", "Seen", "Read", "Mapped"} <= set(life)
    browser.find(".receipt summary").click()
    receipt = browser.find(".receipt dl").text
    assert "3, 1 rejected" in receipt
    # The last reading: the two entries are new in the first one, and another test has it read again.
    assert re.search(r"[02] created, 0 updated, 0 unchanged, 0 removed", receipt)
    assert "file.sha256" in receipt


def test_a_pipeline_is_paused_and_resumed_by_keyboard_and_run_by_pointer(browser: Browser) -> None:
    browser.go("/pipelines/hostile")
    browser.tab_to("Pause")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.texts("h1 .state") == ["disabled"])
    browser.go("/")
    assert "ingestd resume hostile" in browser.texts("#needs code")
    assert "paused" in browser.texts("#pipeline-hostile td[data-label='Next run']")
    browser.tab_to("Resume")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.texts("h1 .state") == ["attention"])
    browser.click("Run now hostile")
    browser.until(lambda: "The daemon reads pipeline hostile now." in browser.text)


def test_hostile_names_and_values_are_shown_as_text(browser: Browser, scene: Scene) -> None:
    for path in ("/pipelines/hostile", "/rejected", "/trace?key=hostile.%3C/td%3E", f"/files?name={HOSTILE_NAME}.csv"):
        browser.go(path)
        assert browser.driver.title.endswith("· ingestd")
        assert browser.run("return document.querySelectorAll('main script, main img, main b').length") == 0
    browser.go("/rejected?pipeline=hostile")
    browser.find("summary").click()
    assert browser.run("return document.querySelector('details').textContent").count(HOSTILE_TEXT) == 1
    assert HOSTILE_NAME.removesuffix("\u202e") in browser.text
    assert browser.find(".direction").get_attribute("data-code") == "U+202E"
    assert browser.complaints() == []


def test_a_trace_shows_the_path_from_the_row_to_the_request(browser: Browser) -> None:
    browser.go("/trace")
    browser.find("#key").send_keys("masses.1", Keys.ENTER)
    browser.until(lambda: "masses.csv, row 2" in browser.text)
    steps = browser.texts(".path > li")
    assert [step.split()[0] for step in steps] == ["Source", "Read", "Value", "Request", "Response"]
    assert "0.10" in steps[2]
    assert "Sink masses in Bench" in steps[3]
    assert "delivered" in steps[4]


def test_a_person_finds_a_mistake_of_the_file_and_checks_for_drift_by_keyboard(browser: Browser, scene: Scene) -> None:
    config = scene.folder / "ingestd.yaml"
    good = config.read_text()
    try:
        config.write_text(good.replace('"pattern"', '\n"patern"', 1))
        browser.go("/")
        browser.tab_to("Configuration")
        browser.press(Keys.ENTER)
        browser.until(lambda: browser.heading == "Configuration")
        assert browser.texts("tbody tr") == [
            "line 2, column 1 pipelines[0].source.patern There is no key 'patern' here. Did you mean 'pattern'?"
        ]
        assert axe_findings(browser) == []
        browser.tab_to("Reload")
        browser.press(Keys.ENTER)
        browser.until(
            lambda: "Nothing was changed, because the file has mistakes." in browser.texts(".notice.bad[role=status]")
        )
    finally:
        config.write_text(good)
    browser.tab_to("Drift")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading == "Drift")
    browser.tab_to("Check now")
    browser.press(Keys.ENTER)
    browser.until(lambda: "Data sinks compared: 3 of 4." in browser.text)
    assert "as delivered" in browser.text


def test_a_person_retries_a_corrected_record_by_keyboard_and_exports_it(browser: Browser, scene: Scene) -> None:
    browser.go("/rejected")
    everything = len(browser.texts("tbody tr"))
    Select(browser.find("#pipeline")).select_by_visible_text("masses")
    browser.find("#key").send_keys("no.such")
    browser.find("#key").send_keys(Keys.ENTER)
    browser.until(lambda: "Nothing is rejected with these filters." in browser.text)
    browser.find("#key").clear()
    browser.find("#key").send_keys(Keys.ENTER)
    browser.until(lambda: 0 < len(browser.texts("tbody tr")) < everything)
    browser.find("button.primary").click()
    browser.until(lambda: browser.texts(".notice.bad") == ["Nothing was selected."])
    browser.tab_to("Select rejection")
    browser.press(Keys.SPACE)
    browser.find("button.primary").send_keys(Keys.ENTER)
    browser.until(lambda: "Mapped again when their source is read" in browser.text)
    assert Select(browser.find("#pipeline")).first_selected_option.text == "masses", "the filter remains"
    assert scene.daemon.wait_for("rejections_retried")["by"] == "web page"
    exported = scene.client.get("/rejected.csv", params={"pipeline": "masses"})
    assert exported.headers["content-disposition"] == 'attachment; filename="rejected.csv"'
    assert exported.text.splitlines()[0] == "part,mass,_reason,_field,_file,_row,_number"
    assert ",0.30," in exported.text


def test_a_held_run_shows_its_differences_and_is_approved(tmp_path: Path, driver: webdriver.Chrome) -> None:
    with running_scene(tmp_path, driver) as scene:
        browser = scene.browser
        browser.fresh()
        browser.go("/pipelines/guarded")
        assert browser.texts(".runs .state") == ["held"], "only the run that is held"
        assert "1 held" in browser.texts(".flow li")[3]
        browser.tab_to("Compare")
        browser.press(Keys.ENTER)
        browser.until(lambda: browser.heading == f"Run {scene.run} of budget.csv")
        browser.go("/held")
        browser.click(f"Run {scene.run} of budget.csv")
        assert browser.find("tbody tr").text.split() == ["guarded.0", "0.5", "0.7", "+0.2", f"{TIMES}1.4"]
        assert len(browser.texts("tbody tr")) == 50
        browser.click("Next")
        browser.until(lambda: len(browser.texts("tbody tr")) == 50 and "guarded.0" not in browser.texts("tbody th"))
        browser.click("Approve: deliver this run")
        browser.until(lambda: f"Run {scene.run} of budget.csv is approved: 0 created, 100 updated" in browser.text)
        assert scene.daemon.wait_for("run_released", decision="approved")["by"] == "web page"
        browser.go("/pipelines/guarded")
        browser.click(f"Roll back run {scene.run}")
        assert browser.find("tbody tr").text.split() == ["guarded.0", "0.7", "0.5", "-0.2", f"{TIMES}0.714"]
        assert "100 restored, 0 removed, 0 created, 0 left" in browser.text
        browser.click("Roll back: restore these values")
        browser.until(lambda: f"Run {scene.run} is rolled back: 100 restored" in browser.text)
        assert scene.daemon.wait_for("runs_rolled_back")["by"] == "web page"
        browser.go(f"/held/{scene.run}")
        assert "web page rolled it back" in browser.text
        browser.go(f"/runs/{scene.run}/rollback")
        assert f"Run {scene.run} is held: nothing of it is delivered" in browser.text
        second = scene.folder / "guarded" / "second"
        second.write_text("part,mass\n" + "".join(f"{number},{number}.9\n" for number in range(100)))
        second.replace(scene.folder / "guarded" / "budget.csv")
        run = scene.daemon.wait_for("run_held", nth=2)["run"]
        browser.go(f"/held/{run}")
        late = scene.client.get(f"/held/{run}").text.partition('name="form_token" value="')[2].partition('"')[0]
        browser.click("Discard: keep what is delivered")
        browser.until(lambda: f"Run {run} of budget.csv is discarded" in browser.text)
        browser.go(f"/held/{run}")
        assert "is not held" in browser.text
        twice = scene.client.post(
            f"/held/{run}/approve",
            data={"form_token": late},
            headers={"Origin": str(scene.client.base_url).rstrip("/")},
        )
        browser.go(twice.headers["Location"])
        assert len(browser.texts(".notice.bad")) == 1, "a second decision is refused, and does not look like a success"


def test_no_page_is_wider_than_a_phone(browser: Browser, scene: Scene) -> None:
    browser.shape(360, 740)
    for path in scene.paths:
        browser.go(path)
        wide: Any = browser.run("const root = document.documentElement; return root.scrollWidth - root.clientWidth")
        assert wide == 0, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(browser: Browser, scene: Scene, scheme: str) -> None:
    browser.colours(scheme)
    found = []
    for path in scene.paths:
        browser.go(path)
        found += [f"{path}: {one}" for one in axe_findings(browser, only="color-contrast" if scheme == "dark" else "")]
        assert len(browser.texts("h1")) == 1, path
    assert found == [], "\n".join(found)


def test_no_page_loads_anything_from_elsewhere_or_breaks_the_content_policy(browser: Browser, scene: Scene) -> None:
    browser.requested()
    for path in scene.paths[:-1]:
        browser.go(path)
    own = str(scene.client.base_url).rstrip("/")
    assert [one for one in browser.requested() if not one.replace(f"anna:{TOKEN}@", "").startswith(own)] == []
    assert [one for one in browser.complaints() if "status of 404" not in one] == []


def test_the_overview_can_be_used_by_keyboard(browser: Browser) -> None:
    browser.go("/")
    browser.press(Keys.TAB)
    assert browser.focused.text == "Skip to the content"
    browser.tab_to("Held runs")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading == "Held runs")
    browser.tab_to("Pipelines")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading == "Pipelines")
    browser.tab_to("masses")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading.startswith("masses"))


def test_two_hundred_pipelines_fit_on_the_page_and_can_be_filtered(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    pipelines = [pipeline(f"bench-{number:03d}", {"path": "drop", "watch": "polling"}) for number in range(200)]
    config = write_listening_configuration(tmp_path, "http://127.0.0.1:9", pipelines)
    with listening_daemon(tmp_path, config) as (_, client):
        other = Browser(browser.driver, str(client.base_url).rstrip("/"))
        other.shape(360, 740)
        other.go("/")
        other.until(lambda: other.find("#live").text == "Live")
        assert len(other.driver.find_elements("css selector", "#rows tr")) == 200
        other.find("#find").send_keys("bench-117")
        other.until(lambda: "bench-116" not in other.text)
        assert "bench-117" in other.text
        assert "read-only" not in other.text
        other.go("/rejected")
        assert other.texts("button") == ["Show"]
