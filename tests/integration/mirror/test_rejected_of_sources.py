"""With ``deletes: remove``, real sources keep the entries of what they reject: a BLOB, a bad status, a broken file, an item."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.database import DatabaseConnector
from connectors.file import FileConnector
from connectors.http import HttpConnector
from connectors.opcua import OpcuaConnector
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.mapping.conversion import ValueRules
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from tests.support.opcua_server import opcua_server
from tests.support.rest_service import rest_service

SINK = SinkAddress(workspace="w", by="label", name="s")


@contextmanager
def entries_of(
    connector: type[Any], options: dict[str, Any], folder: Path, *, key: str = "{k}", value: str = "{v}"
) -> Iterator[Callable[[], dict[str, str]]]:
    """A function that reads the source and returns the entries."""
    context = SourceContext(
        pipeline="p", base=folder, now=time.time, steady=time.monotonic, kept_folder=folder / "kept", until=math.inf
    )
    made = connector(connector.Options.model_validate({**options, "deletes": "remove"}), context)
    mirror = SqliteMirror.open(folder / "state.db")
    mirror.intake.activate(["p"])
    mapping = Mapping([EntrySpec(key=key, value=value, rules=ValueRules(minimum="0"))])
    reader = Reader(
        pipeline="p", connector=made, mapping=mapping, sink=SINK, mirror=mirror.intake, emit=lambda event: None
    )

    def read() -> dict[str, str]:
        report = reader.read_pass()
        assert (report.broken, report.rejected, report.away) == ("", (), "")
        with closing(sqlite3.connect(folder / "state.db")) as connection:
            return dict(connection.execute("SELECT key, value FROM entry WHERE NOT removed"))

    try:
        yield read
    finally:
        made.close()
        mirror.close()


@pytest.mark.parametrize("mode", ["snapshot", "changes"])
def test_a_row_with_a_blob_keeps_its_entry(tmp_path: Path, mode: str) -> None:
    with closing(sqlite3.connect(tmp_path / "parts.db", isolation_level=None)) as owner:
        owner.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v, at INTEGER NOT NULL)")
        owner.executemany("INSERT INTO t VALUES (?, ?, 1)", [("a", "1"), ("b", "2"), ("c", "3")])
        options = {"url": "sqlite:///parts.db", "table": "t", "key": "k", "mode": mode}
        options |= {"cursor": "at"} if mode == "changes" else {}
        with entries_of(DatabaseConnector, options, tmp_path) as read:
            assert read() == {"a": "1", "b": "2", "c": "3"}
            owner.execute("UPDATE t SET v = x'00', at = 2 WHERE k = 'b'")
            owner.execute("DELETE FROM t WHERE k = 'c'")
            assert read() == {"a": "1", "b": "2"}
            owner.execute("UPDATE t SET v = '4', at = 3 WHERE k = 'a'")
            assert read() == {"a": "4", "b": "2"}
            owner.execute("DELETE FROM t WHERE k = 'b'")
            assert read() == {"a": "4"}


def test_a_variable_of_bad_status_keeps_its_last_good_value(tmp_path: Path) -> None:
    values = dict.fromkeys(("One", "Two", "Three"), (20.5, "Double"))
    with opcua_server(values) as server:
        options = {"url": server.url, "browse": "Line1/**", "security": "none"}
        with entries_of(OpcuaConnector, options, tmp_path, key="{path}", value="{value}") as read:
            assert len(read()) == 3
            server.spoil("Two", "BadSensorFailure")
            server.delete("Three")
            assert read() == {"Line1/One": "20.5", "Line1/Two": "20.5"}
            server.put({"One": (21.5, "Double")})
            assert read() == {"Line1/One": "21.5", "Line1/Two": "20.5"}
            server.delete("Two")
            assert read() == {"Line1/One": "21.5"}


def test_a_line_with_too_many_fields_keeps_every_entry(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("k,v\na,1\nb,2\n")
    with entries_of(FileConnector, {"path": "parts.csv", "settle_seconds": 0}, tmp_path) as read:
        assert read() == {"a": "1", "b": "2"}
        path.write_text("k,v\na,1\nb,2,\n")
        assert read() == {"a": "1", "b": "2"}
        path.write_text("k,v\na,1\n")
        assert read() == {"a": "1"}


def test_an_item_that_can_not_be_used_keeps_its_entry(tmp_path: Path) -> None:
    with rest_service() as service:
        options = {"url": f"{service.url}/parts", "records": "data", "key": "k", "page": "single"}
        with entries_of(HttpConnector, options, tmp_path) as read:
            service.records = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "c", "v": 3}]
            assert read() == {"a": "1", "b": "2", "c": "3"}
            service.records = [{"k": "a", "v": 1}, {"k": "b", "v": "n/a"}]
            assert read() == {"a": "1", "b": "2"}
            service.records = [{"k": "a", "v": 1}, {"v": 2}]
            assert read() == {"a": "1", "b": "2"}, "an item without its key may be any of them"
            service.records = [{"k": "a", "v": 1}]
            assert read() == {"a": "1"}
