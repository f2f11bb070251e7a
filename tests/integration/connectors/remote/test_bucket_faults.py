"""A bucket: replaced objects, interrupted moves, cut and large listings, and what no sentence may hold."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from connectors.remote import RemoteConnector
from connectors.remote.object_store import ObjectStore
from connectors.remote.store import find_name_fault
from ingestd.sdk import Partition, SourceBroken, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.object_server import ObjectServer
from tests.support.scripted_bucket import ScriptedBucket

Open = Callable[..., RemoteConnector]
TEXT = b"part,mass\nA,1\n"


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


def fill(bucket: ScriptedBucket, count: int) -> None:
    bucket.objects = {f"drop/f{number:06}.csv": TEXT for number in range(count)}


def test_a_listing_that_is_cut_between_pages_is_no_listing(bucket: ScriptedBucket, connect: Open) -> None:
    fill(bucket, 3_500)
    connector = connect(bucket.options())
    assert len(list(connector.partitions())) == 3_500
    known = dict(connector._state.found.files)
    bucket.fault, bucket.fault_at = (403, "sig=SECRET-SIGNATURE"), 2_000
    with pytest.raises(SourceUnavailable, match="access is denied") as denied:
        list(connector.partitions())
    assert connector._state.found.files == known
    for secret in ("SECRET-SIGNATURE", "s3cret-key"):
        assert secret not in str(denied.value)


def test_a_bucket_with_too_many_objects_is_refused(bucket: ScriptedBucket, connect: Open) -> None:
    fill(bucket, 3_500)
    connector = connect(bucket.options(max_files=1_500))
    with pytest.raises(SourceBroken, match=r"more than 1500 files \(max_files\)"):
        list(connector.partitions())
    assert bucket.requests["LIST"] <= 3, "the rest is not requested"


def test_many_objects_are_listed_in_bounded_memory(bucket: ScriptedBucket, connect: Open) -> None:
    fill(bucket, 20_000)
    connector = connect(bucket.options())
    tracemalloc.start()
    try:
        found = connector._drop.scan()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.files) == 20_000
    assert bucket.requests == {"LIST": 20}
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
