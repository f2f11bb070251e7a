"""Files of typed columns, from the file to the mirror: no entry is removed because a part of a file can't be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.file import FileConnector
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import PassReport, Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from tests.contract.mirror_deliverable import SINK
from tests.support.parquet_footer import COMPRESSED, DATA_OFFSET, META, chunk, edit_footer

FRAME = pl.DataFrame({"part": ["a", "b", "c", "d"], "mass": ["1", "2", "3", "4"], "note": ["w", "x", "y", "z"]})


class Scene:
    """A file, its pipeline and its mirror."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "a.parquet"
        self.folder = folder
        self.mirror = SqliteMirror.open(folder / "state.db")
        self.mirror.intake.activate(["pipe"])

    def read(self, value: str, groups: Aggregation | None = None) -> PassReport:
        options = FileConnector.Options.model_validate({"path": self.file, "settle_seconds": 0, "deletes": "remove"})
        context = SourceContext(pipeline="pipe", base=self.folder, now=lambda: 4e9)
        return Reader(
            pipeline="pipe",
            connector=FileConnector(options, context),
            mapping=Mapping([EntrySpec(key="{part}", value=value)]),
            sink=SINK,
            mirror=self.mirror.intake,
            emit=lambda _: None,
            groups=groups,
            folder=self.folder,
        ).read_pass()

    def entries(self) -> dict[str, str]:
        origins = [origin for key in "abcd" for origin in self.mirror.status.origins(key)]
        return {origin.key: origin.value for origin in origins if origin.value is not None}

    def reasons(self) -> dict[str, str]:
        return {str(one.position): one.reason for one in self.mirror.status.selected(Selection(), limit=100)}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path)
    yield found
    found.mirror.close()


def with_damage(data: bytes, column: int) -> bytes:
    """Return the file with damaged values of a column in the last row group."""
    changed, footers = bytearray(data), []  # type: ignore[var-annotated]
    edit_footer(data, footers.append)
    meta: Any = chunk(footers[0], 1, column)[META][1]
    start, size = meta[DATA_OFFSET][1], meta[COMPRESSED][1]
    changed[start : start + size] = b"\xff" * size
    return bytes(changed)


@pytest.mark.parametrize("damage", [lambda data: with_damage(data, 1), lambda data: with_damage(data, 0)])
def test_damage_in_the_last_row_group_of_a_used_column_removes_no_entry(
    damage: Callable[[bytes], bytes], scene: Scene
) -> None:
    FRAME.write_parquet(scene.file, row_group_size=2)
    scene.read("{mass}")
    scene.file.write_bytes(damage(scene.file.read_bytes()))
    [reason] = scene.read("{mass}").rejected
    assert "can't be read: it is damaged, or stored in a way that is not supported" in reason
    assert scene.entries() == {"a": "1", "b": "2", "c": "3", "d": "4"}


def test_damage_in_an_unused_column_is_not_noticed(scene: Scene) -> None:
    FRAME.write_parquet(scene.file, row_group_size=2)
    scene.file.write_bytes(with_damage(scene.file.read_bytes(), 2))
    [report] = scene.read("{mass}").read
    assert (report.records, report.rejected) == (4, 0)
    assert scene.entries() == {"a": "1", "b": "2", "c": "3", "d": "4"}


def test_a_value_without_text_rejects_its_row_only_if_it_is_used(scene: Scene) -> None:
    FRAME.with_columns(note=pl.Series([b"w", b"\xff", b"y", None])).write_parquet(scene.file, row_group_size=2)
    scene.read("{mass}")
    assert (scene.entries(), scene.reasons()) == ({"a": "1", "b": "2", "c": "3", "d": "4"}, {})
    scene.read("{note}")
    assert scene.entries() == {"a": "w", "b": "2", "c": "y"}  # a rejected row keeps its entry
    assert scene.reasons() == {"2": "The value of column 'note' can't be read: it holds bytes that are no UTF-8 text."}


def test_a_group_with_an_unreadable_value_is_rejected(scene: Scene) -> None:
    FRAME.with_columns(mass=pl.Series([b"1", b"\xff", b"3", b"4"])).write_parquet(scene.file)
    groups = Aggregation(GroupSpec(by=("part",), take=(("mass", AggregateSpec(function="max", field="mass")),)))
    scene.read("{mass}", groups)
    assert scene.entries() == {"a": "1", "c": "3", "d": "4"}
