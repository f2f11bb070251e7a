"""Files that another pipeline reads stay, and nothing is written where another pipeline would read it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingestd.telemetry.catalogue.intake import AcknowledgementFailed
from tests.support.file_flow import FileFlow

Open = Callable[..., FileFlow]


def failures(flow: FileFlow) -> list[str]:
    return [event.sentence for event in flow.events if isinstance(event, AcknowledgementFailed)]


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_file_that_another_pipeline_reads_is_not_removed_until_the_configuration_changes(
    open_flow: Open, after: str
) -> None:
    flow = open_flow(after=after)
    flow.other_readers = {"/drop/a.csv": ["power", "mass"]}
    flow.write("a.csv", "part,mass\nA,1\n")
    for _ in range(2):
        flow.pass_once()
    assert "a.csv stays after it is read, because pipelines 'mass' and 'power' read it" in failures(flow)[0]
    assert (flow.held, flow.files(flow.drop)) == ({"A": "1"}, ["a.csv"])
    flow.other_readers = {}
    flow.pass_once()
    assert (flow.held, flow.files(flow.drop)) == ({"A": "1"}, [])


def test_a_kept_file_may_be_read_by_several_pipelines(open_flow: Open) -> None:
    flow = open_flow(after="keep")
    flow.other_readers = {"a.csv": ["power"]}
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.pass_once()
    assert (flow.held, failures(flow)) == ({"A": "1"}, [])


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ({"after": "archive", "archive": "done"}, "/done/a.csv"),
        ({"after": "archive", "archive": "done"}, "/done/rejected/a.csv.rejected.csv"),
        ({"after": "keep", "quarantine": "bad"}, "/bad/a.csv.rejected.csv"),
    ],
)
def test_nothing_is_written_where_another_pipeline_would_read_it(
    open_flow: Open, options: dict[str, str], written: str
) -> None:
    flow = open_flow(**options)
    flow.other_readers = {written: ["power"]}
    flow.write("a.csv", "part,mass\nA,1\n,2\n")
    flow.pass_once()
    assert f"{written} is not written, because pipeline 'power' reads that folder" in failures(flow)[0]
    assert flow.files(flow.drop) == ["a.csv"]
    assert flow.files(flow.done) == flow.files(flow.base / "bad") == []


def test_an_unreadable_file_that_another_pipeline_reads_stays(open_flow: Open) -> None:
    flow = open_flow()
    flow.other_readers = {"/drop/a.csv": ["power"]}
    flow.write("a.csv", "part,part\nA,1\n")
    flow.pass_once()
    assert flow.rejected() == [("a.csv", None)]
    assert (flow.files(flow.drop), flow.files(flow.done)) == (["a.csv"], [])


def test_files_that_only_another_pipeline_reads_are_not_counted(open_flow: Open) -> None:
    flow = open_flow(pattern="*.csv")
    flow.other_readers = {"/drop/b.txt": ["power"]}
    for name in ("b.txt", "c.txt"):
        flow.write(name, "")
    flow.pass_once()
    (notice,) = flow.connector.notices()
    assert "c.txt" in notice
    assert "b.txt" not in notice
