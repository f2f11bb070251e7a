"""Five tasks by keyboard alone, and with a pointer beside the keyboard for texts: each within its number of steps.

A task begins on the page of the sink, or on the first page of the daemon. `CountedSteps` says what a step is. The steps, with the
characters of typed texts beside them, of these pages and of the pages before they put the data first:

| task | keyboard, before | now | pointer, before | now |
|---|---|---|---|---|
| find a value and plot it | 49 + 6 | 3 + 6 | 6 + 6 | 2 + 6 |
| correct a mistake in ten rows | 109 + 18 | 7 + 17 | 75 + 18 | 4 + 17 |
| import 300 rows below a title, and undo it | 376 + 5 | 5 | 316 + 5 | 7 |
| find the origin of a number, and restore the former one | 70 + 12 | 16 + 4 | 10 + 12 | 3 + 4 |
| find why a file did not arrive, by its name | 12 + 9 | 1 + 9 | 3 + 9 | 1 + 9 |

Before, a plot had no axes, an import was undone by a Delete for each entry, and an origin was only on the daemon's page.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Service, api
from tests.browser.test_daemon_page import Scene, running_scene
from tests.browser.test_grid import stored
from tests.support.chromium import Browser
from tests.support.counted_steps import CountedSteps

KEY = "segment-7.mast.mass"
ORIGIN = {
    "source": "drop", "file": "run-0001.csv", "run": "41", "pipeline": "bench-a3",
    "link": "http://127.0.0.1:8402/trace?key=mass",
}  # fmt: skip


@pytest.fixture
def sink(signed_in: Browser, service: Service) -> str:
    """Open the page of a sink of 385 entries with a history; ten of them have a mistake."""
    entries: dict[str, str | None] = {
        f"segment-{segment}.{part}.{name}": f"{segment}.{len(part)}{len(name)}"
        for segment in range(1, 12)
        for part in ("frame", "wheel-2", "wheel-10", "mast", "battery-pack", "motor-controller", "antenna-bracket")
        for name in ("mass", "centre.x", "centre.y", "supplier", "margin")
    }
    entries |= {f"segment-{segment}.mast.supplier": f"Alumnium works {segment}" for segment in range(1, 11)}
    made = service.sink(service.workspace("Rover"), entries, "Mass budget")
    assert service.http.patch(api(made, "data-sink-history"), json={"changes": 50}).status_code == 200
    for value in ("12.5", "12.75", "18.625"):
        service.write(made, KEY, value)
    signed_in.go(made)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    return made


@pytest.fixture
def steps(signed_in: Browser) -> CountedSteps:
    return CountedSteps(signed_in)


def copied(browser: Browser, service: Service, text: str) -> None:
    """Put a text on the clipboard, as a spreadsheet does."""
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": service.url}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    browser.driver.execute_async_script("navigator.clipboard.writeText(arguments[0]).then(arguments[1])", text)


def find(browser: Browser, steps: CountedSteps, text: str, rows: int = 1) -> None:
    """Type a text on the page of the sink, and wait until it shows the rows that have it."""
    steps.type(text)
    steps.press(Keys.ENTER)
    browser.until(lambda: "search=" in browser.path and len(browser.texts("#entries tr")) == rows)


def shows_plot(browser: Browser) -> bool:
    return browser.heading == f"History of {KEY}" and bool(browser.texts("#chart .cover"))


def test_a_value_is_found_and_plotted_by_keyboard(signed_in: Browser, sink: str, steps: CountedSteps) -> None:
    find(signed_in, steps, "18.625")
    steps.press(Keys.TAB, Keys.ENTER)
    signed_in.until(lambda: shows_plot(signed_in))
    assert steps.steps <= 3, str(steps)


def test_a_value_is_found_and_plotted_with_a_pointer(signed_in: Browser, sink: str, steps: CountedSteps) -> None:
    find(signed_in, steps, "18.625")
    steps.click("#entries .when a")
    signed_in.until(lambda: shows_plot(signed_in))
    assert steps.steps <= 2, str(steps)


def is_corrected(service: Service, sink: str) -> bool:
    return all(
        stored(service, sink)[f"segment-{one}.mast.supplier"] == f"Aluminium works {one}" for one in range(1, 11)
    )


def test_a_mistake_in_ten_rows_is_corrected_by_keyboard(
    signed_in: Browser, service: Service, sink: str, steps: CountedSteps
) -> None:
    find(signed_in, steps, "Alumnium", rows=10)
    steps.chord(Keys.CONTROL, "a")
    steps.chord(Keys.CONTROL, Keys.ENTER)
    steps.press(Keys.TAB)
    steps.type("Aluminium")
    steps.press(Keys.ENTER)
    signed_in.until(lambda: "10 changed: saved" in signed_in.find("#done").text)
    assert is_corrected(service, sink)
    assert steps.steps <= 7, str(steps)


def test_a_mistake_in_ten_rows_is_corrected_with_a_pointer(
    signed_in: Browser, service: Service, sink: str, steps: CountedSteps
) -> None:
    find(signed_in, steps, "Alumnium", rows=10)
    steps.click("thead .row-box")
    steps.click("#replacement")
    steps.type("Aluminium")
    steps.click("#selection [value=replace]")
    signed_in.until(lambda: "10 changed: saved" in signed_in.find("#done").text)
    assert is_corrected(service, sink)
    assert steps.steps <= 4, str(steps)


TABLE = "Masses of the bench, exported for Rover\n\nPart\tMass [kg]\n" + "".join(
    f"part-{number:03d}\t{number / 8}\n" for number in range(300)
)


def test_a_table_below_a_title_is_imported_and_undone_by_keyboard(
    signed_in: Browser, service: Service, sink: str, steps: CountedSteps
) -> None:
    before = stored(service, sink)
    copied(signed_in, service, TABLE)
    steps.chord(Keys.CONTROL, "v")
    signed_in.until(lambda: signed_in.texts(".counts li")[:1] == ["300 new"])
    assert "Row 3 has the names" in signed_in.find("#decided").text
    steps.press(Keys.ENTER)
    signed_in.until(lambda: signed_in.heading == "Imported entries of Mass budget")
    assert len(stored(service, sink)) == len(before) + 300
    steps.chord(Keys.CONTROL, "z")
    signed_in.until(lambda: signed_in.texts("#done") == ["300 undone."])
    assert stored(service, sink) == before
    assert steps.steps <= 5, str(steps)


def test_a_table_below_a_title_is_imported_and_undone_with_a_pointer(
    signed_in: Browser, service: Service, sink: str, steps: CountedSteps
) -> None:
    before = stored(service, sink)
    copied(signed_in, service, TABLE)
    steps.click("[href$='/import']")
    steps.click("#table")
    steps.chord(Keys.CONTROL, "v")
    steps.click("#import .primary")
    signed_in.until(lambda: signed_in.texts(".counts li")[:1] == ["300 new"])
    steps.click("button[name=apply]")
    signed_in.until(lambda: signed_in.heading == "Imported entries of Mass budget")
    steps.click("form.undo button")
    signed_in.until(lambda: signed_in.texts("#done") == ["300 undone."])
    assert stored(service, sink) == before
    assert steps.steps <= 7, str(steps)


@pytest.fixture
def delivered(signed_in: Browser, service: Service, sink: str) -> str:
    """Have a pipeline write a further value of the key; the former one is that of yesterday."""
    body = {"entries": [{"key": KEY, "value": "99.5"}], "origins": [{**ORIGIN, "count": 1, "rowSteps": [2]}]}
    written = service.http.post(f"{api(sink)}/mass", json=body)
    assert written.status_code == 200, written.text
    signed_in.go(sink)
    signed_in.until(lambda: signed_in.find("#live").text == "Live")
    return sink


def names_origin(browser: Browser) -> bool:
    return "run-0001.csv row 2, pipeline bench-a3" in browser.find("tbody tr td[data-label=After]").text


def test_the_origin_of_a_number_is_found_and_the_former_one_restored_by_keyboard(
    signed_in: Browser, service: Service, delivered: str, steps: CountedSteps
) -> None:
    find(signed_in, steps, "99.5")
    steps.press(Keys.TAB, Keys.ENTER)
    signed_in.until(lambda: signed_in.heading == f"History of {KEY}")
    assert names_origin(signed_in)
    steps.press(Keys.TAB, Keys.ENTER)  # "Skip to the content"
    steps.tab_to("[name=side]")
    steps.press(Keys.ENTER)
    signed_in.until(lambda: stored(service, delivered)[KEY] == "18.625")
    assert steps.steps <= 16, str(steps)


def test_the_origin_of_a_number_is_found_and_the_former_one_restored_with_a_pointer(
    signed_in: Browser, service: Service, delivered: str, steps: CountedSteps
) -> None:
    find(signed_in, steps, "99.5")
    steps.click("#entries .when a")
    signed_in.until(lambda: signed_in.heading == f"History of {KEY}")
    assert names_origin(signed_in)
    steps.click("[name=side]")
    signed_in.until(lambda: stored(service, delivered)[KEY] == "18.625")
    assert steps.steps <= 3, str(steps)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, driver: webdriver.Chrome) -> Iterator[Scene]:
    with running_scene(tmp_path_factory.mktemp("page"), driver) as scene:
        yield scene


@pytest.fixture
def front(scene: Scene) -> Browser:
    scene.browser.fresh()
    scene.browser.go("/")
    return scene.browser


def test_the_reason_why_a_file_did_not_arrive_is_found_by_typing_its_name(front: Browser) -> None:
    """The pointer has nothing to do: the first page takes the name at once."""
    steps = CountedSteps(front)
    steps.type("empty.csv")
    assert front.find("#no-row").is_displayed()
    steps.press(Keys.ENTER)
    front.until(lambda: "empty.csv is empty; it is read once it has content" in front.text)
    assert steps.steps <= 1, str(steps)


def test_the_pipeline_that_the_first_page_shows_is_opened_by_enter(front: Browser) -> None:
    front.press("guard", Keys.ENTER)
    front.until(lambda: front.heading.startswith("guarded"))
