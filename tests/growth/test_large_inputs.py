"""Cases that were slow once: columns of a file, files of a tree, pipelines at a start, removed entries. Work at N and at 4 N.

The instructions of the interpreter are counted beside the work of SQLite, and the columns of frames that polars goes through.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from connectors.file import FileConnector, FileOptions
from ingestd.core.mapping import EntrySpec
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.daemon.assembly import assemble
from ingestd.daemon.configuration import read_configuration
from ingestd.sdk import Connector, SourceContext
from tests.support.document_server import DocumentServer
from tests.support.file_flow import FileFlow
from tests.support.work_counter import Growth, Work, counting_connections, counting_instructions

FIRST: Final = 20
"""The size of the first, uncounted run, which imports modules and fills caches."""


class _OneFile(FileFlow):
    """A pipeline over one file: the entries of its removed rows are removed."""

    def connect(self, context: SourceContext) -> Connector:
        options = FileOptions.model_validate({"path": "drop/parts.csv", "settle_seconds": 0, "deletes": "remove"})
        return FileConnector(options, context)


def columns(folder: Path, size: int) -> None:
    """Read a file with this number of columns, and read it again after a value of each row has changed."""
    flow = FileFlow(folder, spec=EntrySpec(key="{part}.{column}", selection=ColumnSelection(match=("*",))))
    header = ",".join(["part", *(f"column {number}" for number in range(size))])
    for last in ("1", "2"):
        values = ",".join([*map(str, range(size - 1)), last])
        flow.write("wide.csv", f"{header}\nA,{values}\nB,{values}\n")
        flow.pass_once()
    assert len(flow.held) == 2 * size
    flow.close()


def files(folder: Path, size: int) -> None:
    """Read a tree with this number of files, scan it again, and once more after a restart."""
    flow = FileFlow(folder, recursive=True, after="keep")
    for number in range(size):
        flow.write(f"{number % (size // 10)}/{number}.csv", f"part,mass\nP{number},1\n")
    assert len(flow.pass_once().read) == size
    assert not flow.pass_once().read
    flow.restart()
    assert not flow.pass_once().read
    flow.close()


def deletions(folder: Path, size: int) -> None:
    """Remove all rows of a file but one. The guard holds that; then it is approved and delivered."""
    flow = _OneFile(folder)
    rows = [f"P{number},{number}\n" for number in range(size + 1)]
    flow.write("parts.csv", "part,mass\n" + "".join(rows))
    flow.pass_once()
    flow.write("parts.csv", "part,mass\n" + rows[-1])
    (summary,) = flow.pass_once().read
    assert flow.mirror.intake.approve(summary.id).removed == size
    flow.pass_once()
    assert len(flow.held) == 1
    flow.close()


def pipelines(folder: Path, size: int) -> None:
    """Start a daemon with this number of pipelines, each with a folder, a file and a sink, and read them once."""
    asyncio.run(_start_and_read(folder, size))


async def _start_and_read(folder: Path, size: int) -> None:
    configured = []
    for number in range(size):
        drop = folder / "drop" / str(number)
        drop.mkdir(parents=True)
        (drop / "parts.csv").write_text(f"part,mass\nP{number},1\n")
        configured.append(
            {
                "name": f"p{number}",
                "source": {"connector": "directory", "path": f"drop/{number}", "settle_seconds": 0},
                "entries": {"key": "{part}", "value": "{mass}"},
                "sink": {"workspace": "Bench", "label": f"Rig {number}"},
            }
        )
    with DocumentServer() as server:
        server.workspace("Bench")
        settings = {"service": {"url": server.url, "api_key": "k"}, "state": "state.db", "pipelines": configured}
        (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML
        configuration = read_configuration(folder / "ingestd.yaml", environment={}, cwd=folder)
        async with assemble(configuration, emit=lambda _: None) as assembly:
            reports = await assembly.supervisor.read_once()
            assert [len(report.read) for report in reports] == [1] * size
            assert assembly.mirror.status.pending() == size


@contextmanager
def counting_columns(work: Work) -> Iterator[None]:
    """Count the columns of each frame that is asked for the names of all, or for a selection of them."""
    names: Any = pl.DataFrame.columns
    select = pl.DataFrame.__getitem__

    def columns(frame: pl.DataFrame) -> list[str]:
        work.add("columns of frames", frame.width)
        found: list[str] = names.fget(frame)
        return found

    def getitem(frame: pl.DataFrame, key: Any) -> Any:
        work.add("columns of frames", 1 if isinstance(key, str) else frame.width)
        return select(frame, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.DataFrame, "columns", property(columns, names.fset))
        patch.setattr(pl.DataFrame, "__getitem__", getitem)
        yield


@pytest.mark.parametrize(("case", "size"), [(columns, 128), (files, 40), (deletions, 1_000), (pipelines, 10)])
def test_an_input_of_four_times_the_size_causes_at_most_4_6_times_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Callable[[Path, int], None], size: int
) -> None:
    monkeypatch.setattr("ingestd.core.mapping.rule_group._RULES_IN_QUERY", 32)
    growth = Growth()
    for number in (FIRST, size, 4 * size):
        folder = tmp_path / f"{number} of {case.__name__}"
        folder.mkdir()
        if number == FIRST:
            case(folder, number)
            continue
        with growth.at(number) as work, counting_connections(work), counting_columns(work), counting_instructions(work):
            case(folder, number)
    growth.check()
