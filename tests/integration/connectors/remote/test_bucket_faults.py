"""A bucket: replaced objects, interrupted moves, cut and large listings, and what no sentence may hold."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from connectors.remote import RemoteConnector, RemoteOptions
from connectors.remote.object_store import ObjectStore
from connectors.remote.store import find_name_fault
from ingestd.sdk import Partition, SourceBroken, SourceContext, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.object_server import ObjectServer

Open = Callable[..., RemoteConnector]
TEXT = b"part,mass\nA,1\n"


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Open]:
    connectors: list[RemoteConnector] = []

    def opened(options: dict[str, Any]) -> RemoteConnector:
        context = SourceContext(pipeline="t", base=tmp_path, now=lambda: 4e9)
        connectors.append(RemoteConnector(RemoteOptions.model_validate(options), context))
        return connectors[-1]

    yield opened
    for connector in connectors:
        connector.close()


def test_an_object_that_is_replaced_before_its_copy_is_read_again(object_server: ObjectServer, connect: Open) -> None:
    object_server.put("drop/a.csv", TEXT)
    connector = connect(object_server.options("drop"))
    file = connector._drop.file("a.csv")
    file.status()
    object_server.put("drop/a.csv", b"part,mass\nB,2\n")  # of the same size, and perhaps of the same second
    with pytest.raises(SourceUnavailable, match=r"a\.csv was replaced or written to while it was read"):
        file.open()
    (batch,) = connector.read(Partition(name="a.csv"), None)
    assert batch.records.rows() == [("B", "2")]


def test_an_object_that_was_replaced_after_it_was_read_is_not_moved(object_server: ObjectServer, connect: Open) -> None:
    object_server.put("drop/a.csv", TEXT)
    connector = connect(object_server.options("drop", after="archive", archive="/done"))
    (partition,) = connector.partitions()
    cursor = list(connector.read(partition, None))[-1].cursor
    object_server.put("drop/a.csv", b"part,mass\nB,2\n")
    connector.acknowledge(partition, cursor, acknowledgement())
    assert object_server.paths() == ["drop/a.csv"]


@pytest.mark.parametrize("instant", ["before the copy", "before the deletion"])
def test_an_object_that_is_replaced_during_its_move_is_never_lost(
    object_server: ObjectServer, connect: Open, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    object_server.put("drop/a.csv", TEXT)
    connector = connect(object_server.options("drop", after="archive", archive="/done"))
    (partition,) = connector.partitions()
    cursor = list(connector.read(partition, None))[-1].cursor
    checked, is_same = 0, ObjectStore._is_same

    async def replaced(self: ObjectStore, path: str, identity: Any) -> bool:
        nonlocal checked
        checked += 1
        if instant == "before the deletion" and checked == 2:
            object_server.put("drop/a.csv", b"part,mass\nB,2\n")
        found = await is_same(self, path, identity)
        if instant == "before the copy" and checked == 1:
            object_server.put("drop/a.csv", b"part,mass\nB,2\n")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ObjectStore, "_is_same", replaced)
        connector.acknowledge(partition, cursor, acknowledgement())
    assert object_server.get("drop/a.csv") == b"part,mass\nB,2\n", "the new content was not read yet"
    archived = [path for path in object_server.paths("done") if path.endswith(".csv")]
    assert archived == ([] if instant == "before the copy" else ["done/a.csv"])
    assert all(object_server.get(path) == TEXT for path in archived)
    assert len(object_server.paths("done")) == 2 * len(archived), "a receipt exists with its file only"


@pytest.mark.parametrize("receipt", [True, False])
def test_a_copy_that_a_crash_separated_from_its_deletion_is_recognised(
    object_server: ObjectServer, connect: Open, monkeypatch: pytest.MonkeyPatch, receipt: bool
) -> None:
    object_server.put("drop/a.csv", TEXT)
    options = object_server.options("drop", after="archive", archive="/done", receipt=receipt)
    first = connect(options)
    (partition,) = first.partitions()
    cursor = list(first.read(partition, None))[-1].cursor
    with monkeypatch.context() as patched:
        patched.setattr("obstore.delete_async", None)  # the end of the process
        with pytest.raises(TypeError):
            first.acknowledge(partition, cursor, acknowledgement())
    assert {"done/a.csv", "drop/a.csv"} <= set(object_server.paths())
    connect(options).acknowledge(partition, cursor, acknowledgement())
    receipts = ["done/a.csv.receipt.json"] if receipt else []
    assert object_server.paths() == ["done/a.csv", *receipts]


def test_a_hostile_key_never_leads_out_of_the_prefix(object_server: ObjectServer, connect: Open) -> None:
    object_server.put("drop/a.csv", TEXT)
    object_server.put("drop-other/b.csv", TEXT)
    object_server.put("drop/" + "d/" * 600 + "c.csv", TEXT)
    connector = connect(object_server.options("drop", recursive=True))
    assert [one.name for one in connector.partitions()] == ["a.csv"]
    assert any("longer than 1024 bytes" in notice for notice in connector.notices())
    for name in ("../drop-other/b.csv", "/drop-other/b.csv", "a//b.csv"):
        with pytest.raises(SourceBroken, match="leads out of its folder"):
            list(connector.read(Partition(name=name), None))
    assert find_name_fault("sub/a b.csv") == ""
    assert find_name_fault("x" * 256)


class ListServer:
    """A server that lists ``count`` objects, a thousand a page, and fails at the page ``cut`` (0: never)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.cut = 0
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                query = parse_qs(urlsplit(self.path).query)
                start = int(query.get("continuation-token", ["0"])[0])
                if outer.cut and start >= outer.cut * 1000:
                    self.send_error(403, "sig=SECRET-SIGNATURE")
                    return
                body = outer.page(start).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def page(self, start: int) -> str:
        end = min(start + 1000, self.count)
        items = "".join(
            f"<Contents><Key>drop/f{number:06}.csv</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{number:032x}"</ETag><Size>10</Size><StorageClass>STANDARD</StorageClass></Contents>'
            for number in range(start, end)
        )
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < self.count else ""
        truncated = "true" if more else "false"
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bench</Name><Prefix>drop/</Prefix>'
            f"<KeyCount>{end - start}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>{truncated}</IsTruncated>"
            f"{more}{items}</ListBucketResult>"
        )

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "url": "s3://bench/drop", "endpoint": self.endpoint, "access_key": "test",
            "secret_key": "s3cret-key", "settle_seconds": 0,
        } | more  # fmt: skip

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def list_server() -> Iterator[ListServer]:
    server = ListServer(3_500)
    yield server
    server.stop()


def test_a_listing_that_is_cut_between_pages_is_no_listing(list_server: ListServer, connect: Open) -> None:
    connector = connect(list_server.options())
    assert len(list(connector.partitions())) == 3_500
    known = dict(connector._state.found.files)
    list_server.cut = 2
    with pytest.raises(SourceUnavailable, match="access is denied") as denied:
        list(connector.partitions())
    assert connector._state.found.files == known
    for secret in ("SECRET-SIGNATURE", "s3cret-key"):
        assert secret not in str(denied.value)


def test_a_bucket_with_too_many_objects_is_refused(list_server: ListServer, connect: Open) -> None:
    connector = connect(list_server.options(max_files=1_500))
    with pytest.raises(SourceBroken, match=r"more than 1500 files \(max_files\)"):
        list(connector.partitions())
    assert list_server.requests <= 3, "the rest is not requested"


def test_many_objects_are_listed_in_bounded_memory(list_server: ListServer, connect: Open) -> None:
    list_server.count = 20_000
    connector = connect(list_server.options())
    tracemalloc.start()
    try:
        found = connector._drop.scan()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.files) == 20_000
    assert list_server.requests == 20
    assert peak / 20_000 < 700, f"{peak / 20_000:.0f} bytes for each object"


def test_what_was_read_is_acknowledged_after_an_interruption(object_server: ObjectServer, connect: Open) -> None:
    object_server.put("drop/a.csv", TEXT)
    connector = connect(object_server.options("drop", after="delete"))
    (partition,) = connector.partitions()
    cursor = list(connector.read(partition, None))[-1].cursor
    connector.interrupt()  # `ingestd sync` does so at its end, and acknowledges then
    with pytest.raises(SourceUnavailable, match="interrupted"):
        list(connector.read(partition, None))
    assert connector.acknowledge_together([(partition, cursor, acknowledgement())]) == [None]
    assert object_server.paths() == []


def test_an_object_above_max_bytes_is_rejected_unread(object_server: ObjectServer, connect: Open) -> None:
    object_server.put("drop/a.csv", TEXT)
    connector = connect(object_server.options("drop", max_bytes=5))
    with pytest.raises(SourceBroken, match=r"a\.csv has 14 bytes, more than max_bytes \(5\)"):
        list(connector.read(Partition(name="a.csv"), None))
