"""Conversions as jobs: queued, leased, retried, requested again, stopped; and their events."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.deliveries.conftest import ManualClock, arrival
from tests.support.api_client import api_client
from tests.support.cloud_files import DEADLINE_SECONDS, FILES, CloudFiles
from tests.support.conversion_processes import conversion_processes
from tests.support.convertible_files import png_header
from tests.support.json_schema import fits
from tests.support.webhook_receiver import WebhookReceiver
from workspaced.app import running
from workspaced.resources.cloud_storage import conversion_store
from workspaced.resources.cloud_storage.conversion_store import ConversionClaim
from workspaced.security.egress.rules import EgressRules
from workspaced.settings.model import WorkspacedSettings
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import Transaction
from workspaced.storage.postgres_store import PostgresStore
from workspaced.storage.sqlite_store import SqliteStore
from workspaced.storage.store import Store

CSV = b"part,mass\n00417,1.5\n"
# A conversion that is interrupted while it runs: it takes long enough on any machine.
LONG_CSV = b"a,b\n" + b"1.5,xyz\n" * 4_000_000


@asynccontextmanager
async def _service(
    settings: WorkspacedSettings, key: str, clock: ManualClock | None = None
) -> AsyncIterator[CloudFiles]:
    async with running(settings, clock=clock) as app, api_client(app, key) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        yield CloudFiles(http=http, workspace=workspace)


def _paced(settings: WorkspacedSettings, **limits: Any) -> WorkspacedSettings:
    return dataclasses.replace(settings, conversion=ConversionSettings(**limits))


async def _converting() -> set[int]:
    """Return the process of a conversion when it exists."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (found := conversion_processes()):  # noqa: ASYNC110  a claim is committed before its process starts
            await asyncio.sleep(0.01)
    return found


async def _ended(processes: set[int]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while conversion_processes() & processes:  # noqa: ASYNC110  only its parent gets a signal of its end
            await asyncio.sleep(0.01)


async def test_an_upload_is_converted_and_the_results_can_be_downloaded(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract C6
    async with _service(settings, make_key()) as files:
        file = (await files.upload("mass.csv", CSV))["id"]
        conversion = await files.conversion(file)
        assert (conversion["state"], conversion["attempt"], conversion["error"]) == ("succeeded", 1, None)
        assert conversion["startedAt"] <= conversion["finishedAt"]
        assert [one["name"] for one in conversion["outputs"]] == ["table.parquet", "preview.json"]
        preview = await files.http.get(f"{FILES}/download/{file}?output=preview.json")
        assert preview.json()["rows"] == [["00417", 1.5]]
        assert preview.headers["Content-Disposition"] == 'attachment; filename="preview.json"'
        parquet = await files.content(file, output="table.parquet")
        assert len(parquet) == conversion["outputs"][0]["size"]
        first = (await files.record(file))["versionId"]
        await files.upload("mass.csv", CSV + b"00418,2.5\n", id=file)
        assert (await files.conversion(file))["state"] == "succeeded"
        later = await files.http.get(f"{FILES}/download/{file}?output=preview.json")
        assert later.json()["rowCount"] == 2
        former = await files.http.get(f"{FILES}/download/{file}?output=preview.json&versionId={first}")
        assert former.json()["rowCount"] == 1, "the outputs of older versions are kept"


async def test_a_type_without_a_converter_needs_none_until_a_conversion_is_requested(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    async with _service(settings, make_key()) as files:
        file = (await files.upload("a.zip", b"PK"))["id"]
        assert (await files.record(file))["conversion"] == {
            "state": "not_required",
            "attempt": 0,
            "errorClass": None,
            "error": None,
            "startedAt": None,
            "finishedAt": None,
            "outputs": [],
        }
        assert (await files.http.post(f"{FILES}/retry-conversion/{file}")).status_code == 200
        conversion = await files.conversion(file, "failed")
        assert (conversion["attempt"], conversion["errorClass"]) == (1, "unsupported")
        assert conversion["error"] == "There is no converter for application/zip."
        await files.http.patch(f"{FILES}/{file}", json={"fileName": "a.csv"})
        await files.http.post(f"{FILES}/retry-conversion/{file}")
        conversion = await files.conversion(file, attempt=2)
        assert conversion["errorClass"] != "unsupported", "it uses the current name of the file"


async def test_cs5_repeats_a_successful_conversion(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract C7
    async with _service(settings, make_key()) as files:
        file = (await files.upload("mass.csv", CSV))["id"]
        before = await files.conversion(file)
        response = await files.http.post(f"{FILES}/retry-conversion/{file}")
        assert (response.status_code, response.content) == (200, b"")
        after = await files.conversion(file, attempt=2)
        assert (after["state"], after["attempt"]) == ("succeeded", 2)
        assert after["startedAt"] >= before["finishedAt"]
        assert after["outputs"] == before["outputs"]


async def test_cs5_rejects_invalid_requests(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    async with _service(settings, make_key()) as files:
        path = f"{FILES}/retry-conversion/{(await files.upload('a.zip', b'PK'))['id']}"
        for body, status in (([], 400), ({"force": "yes"}, 400)):
            assert (await files.http.post(path, json=body)).status_code == status
        typed = await files.http.post(path, content=b"<a/>", headers={"Content-Type": "text/xml"})
        assert typed.status_code == 415
        assert (await files.http.post(path, content=b" " * 1_100_000)).status_code == 413
        keyed = {"Idempotency-Key": "one"}
        assert (await files.http.post(path, json={}, headers=keyed)).status_code == 200
        again = await files.http.post(path, json={}, headers=keyed)
        assert again.headers["Idempotent-Replayed"] == "true"
        reused = await files.http.post(path, json={"force": True}, headers=keyed)
        assert reused.status_code == 422
        ignored = await files.http.post(path, json={"mode": 1})
        assert ignored.headers["X-Ignored-Fields"] == "mode"


async def test_a_repeated_request_creates_no_second_job_and_force_creates_one(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract C7
    async with _service(settings, make_key()) as files:
        file = (await files.upload("long.csv", LONG_CSV))["id"]
        begun = await files.conversion(file, "in_progress")
        assert begun["attempt"] == 1
        first = await _converting()
        assert len(first) == 1
        for _ in range(2):
            assert (await files.http.post(f"{FILES}/retry-conversion/{file}", json={})).status_code == 200
        assert (await files.record(file))["conversion"]["attempt"] == 1
        assert (await files.http.post(f"{FILES}/retry-conversion/{file}", json={"force": True})).status_code == 200
        again = await files.conversion(file, "in_progress", attempt=2)
        assert again["attempt"] == 2
        await _ended(first)
        await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})


@pytest.mark.both_databases
@pytest.mark.parametrize("what", ["file", "workspace"])
async def test_a_conversion_stops_when_its_file_or_workspace_is_deleted(
    settings: WorkspacedSettings, make_key: MakeKey, what: str
) -> None:
    # contract W6
    async with _service(settings, make_key()) as files:
        file = (await files.upload("long.csv", LONG_CSV))["id"]
        await files.conversion(file, "in_progress")
        running_now = await _converting()
        path = f"{FILES}/{file}?workspaceId={files.workspace}" if what == "file" else f"/v1/workspace/{files.workspace}"
        assert (await files.http.delete(path)).status_code == 200
        await _ended(running_now)
    row = transact(settings.database, lambda tx: tx.one("SELECT state, lease FROM conversion"))
    assert row is not None
    assert tuple(row) == ("pending", None), "returned in case of a restore"


async def test_a_stopping_service_releases_its_conversions(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    key = make_key()
    async with _service(settings, key) as files:
        file = (await files.upload("long.csv", LONG_CSV))["id"]
        await files.conversion(file, "in_progress")
    row = transact(settings.database, lambda tx: tx.one("SELECT state, lease, attempt, failures FROM conversion"))
    assert row is not None
    assert tuple(row) == ("pending", None, 1, 0), "that was no attempt"


async def test_a_service_that_stops_during_a_claim_releases_it(
    settings: WorkspacedSettings, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed, responding = asyncio.Event(), asyncio.Event()

    def late(store: type[Store]) -> None:
        write = store.write

        async def held(self: Store, work: Callable[[Transaction], Any], *, weight: int = 1) -> Any:
            result = await write(self, work, weight=weight)
            if isinstance(result, ConversionClaim):
                claimed.set()
                await responding.wait()
            return result

        monkeypatch.setattr(store, "write", held)

    late(SqliteStore)
    late(PostgresStore)
    async with _service(settings, make_key()) as files:
        await files.upload("long.csv", LONG_CSV)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await claimed.wait()
        asyncio.get_running_loop().call_later(0.2, responding.set)
    row = transact(settings.database, lambda tx: tx.one("SELECT state, lease FROM conversion"))
    assert row is not None
    assert tuple(row) == ("pending", None)


async def test_a_conversion_that_timed_out_is_retried_and_fails_after_three_attempts(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    # contract C6
    clock = ManualClock()
    async with _service(_paced(settings, seconds=0.05), make_key(), clock) as files:
        file = (await files.upload("mass.csv", CSV))["id"]
        for attempt, pause in ((2, 10), (3, 60), (4, 300)):
            waiting = await files.conversion(file, "pending", attempt=attempt)
            assert waiting["errorClass"] == "timeout"
            assert "took more than 0.05 seconds" in waiting["error"]
            await clock.advance(pause - 1)
            assert (await files.record(file))["conversion"]["state"] == "pending", "not before its time"
            await clock.advance(1)
        last = await files.conversion(file, "failed")
        assert (last["attempt"], last["errorClass"]) == (4, "timeout")


@pytest.mark.both_databases
async def test_a_clock_that_is_put_back_by_an_hour_postpones_a_conversion_by_no_hour(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    clock = ManualClock()
    async with _service(_paced(settings, seconds=0.05), make_key(), clock) as files:
        first = (await files.upload("a.csv", CSV))["id"]
        await files.conversion(first, "pending", attempt=2)
        clock.set_back(3_600)
        second = (await files.upload("b.csv", CSV))["id"]  # wakes the worker
        await files.conversion(second, "pending", attempt=2)
        await clock.advance(settings.conversion.lease_seconds)
        await files.conversion(first, "pending", attempt=3)


@pytest.mark.both_databases
async def test_a_failure_caused_by_the_file_is_not_retried(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract C6
    clock = ManualClock()
    async with _service(settings, make_key(), clock) as files:
        file = (await files.upload("a.png", png_header(60_000, 60_000)))["id"]
        failed = await files.conversion(file)
        assert (failed["state"], failed["errorClass"], failed["attempt"]) == ("failed", "unsupported", 1)
        await clock.advance(86_400)
        assert (await files.record(file))["conversion"] == failed


@pytest.mark.both_databases
async def test_an_expired_lease_is_taken_over(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    # contract C6
    clock = ManualClock()
    key = make_key()
    no_converter = _paced(settings, at_once=0)
    async with _service(no_converter, key, clock) as files:
        file = (await files.upload("mass.csv", CSV))["id"]
        limits = ConversionSettings()
        held = transact(
            settings.database, lambda tx: conversion_store.claim(tx, lease="gone/1", settings=limits, now=clock.now())
        )
        assert held is not None
        assert (await files.record(file))["conversion"]["state"] == "in_progress"
    async with _service(settings, key, clock) as files:
        assert (await files.record(file))["conversion"]["state"] == "in_progress", "until the lease ends"
        await clock.advance(limits.lease_seconds)
        done = await files.conversion(file)
        assert (done["state"], done["attempt"]) == ("succeeded", 2)
    assert transact(settings.database, lambda tx: conversion_store.succeed(tx, held, [], now=clock.now())) is False
    late = transact(
        settings.database,
        lambda tx: conversion_store.fail(tx, held, "internal", "too late", settings=limits, now=clock.now()),
    )
    assert late is None, "a worker without its lease changes nothing"


async def test_a_file_that_repeatedly_kills_its_converter_is_marked_failed(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    clock = ManualClock()
    async with _service(_paced(settings, at_once=0), make_key(), clock) as files:
        file = (await files.upload("mass.csv", CSV))["id"]
        limits = ConversionSettings()
        for number in range(4):
            claimed = transact(
                settings.database,
                lambda tx, number=number: conversion_store.claim(  # type: ignore[misc]
                    tx, lease=f"gone/{number}", settings=limits, now=clock.now()
                ),
            )
            assert claimed is not None, number
            await clock.advance(limits.lease_seconds)
        last = transact(
            settings.database, lambda tx: conversion_store.claim(tx, lease="gone/5", settings=limits, now=clock.now())
        )
        assert last is None
        failed = (await files.record(file))["conversion"]
        assert (failed["state"], failed["errorClass"], failed["attempt"]) == ("failed", "internal", 4)
        assert failed["error"] == "The process that converted the file ended before the conversion."


@pytest.mark.both_databases
async def test_two_processes_convert_a_file_once(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    key = make_key()
    async with _service(settings, key) as one, _service(settings, key):
        records = [await one.upload(f"{number}.csv", CSV + str(number).encode() + b",1\n") for number in range(4)]
        for record in records:
            assert (await one.conversion(record["id"]))["attempt"] == 1


async def test_every_change_of_a_file_and_its_conversion_emits_an_event(
    settings: WorkspacedSettings, make_key: MakeKey
) -> None:
    open_egress = dataclasses.replace(settings, egress=EgressRules.from_environment({}, dev=True))
    with WebhookReceiver() as receiver:
        async with _service(open_egress, make_key()) as files:
            schemas = {
                kind["type"]: kind["schema"] for kind in (await files.http.get("/v1/webhooks/event-types")).json()
            }
            made = await files.http.post(
                "/v1/webhooks", json={"url": receiver.url, "dataEvents": ["cloud_storage.*"], "inOrder": True}
            )
            assert made.status_code == 201
            file = (await files.upload("mass.csv", CSV))["id"]
            await files.conversion(file, "succeeded")
            await files.http.patch(f"{FILES}/{file}", json={"fileName": "budget.csv"})
            await files.http.put(f"{FILES}/metadata/{file}", content=b'{"mass": 1.10}')
            await files.http.put(f"{FILES}/metadata/{file}", content=b'{"mass": 1.10}')
            await files.http.post(f"{FILES}/retry-conversion/{file}")
            await files.conversion(file, "succeeded", attempt=2)
            link = await files.link("broken.pdf", id=file)
            await files.http.put(link["uploadUrl"], content=b"no pdf")
            await files.http.post(f"{FILES}/upload-complete/{file}")
            await files.conversion(file, "failed")
            await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})
            events = [(await arrival(receiver)).event for _ in range(11)]
    for event in events:
        assert fits(event, schemas[event["type"]], schemas[event["type"]]), event
    assert [event["type"].removeprefix("cloud_storage.") for event in events] == [
        "file.created",
        "conversion.started",
        "conversion.succeeded",
        "file.updated",
        "metadata.updated",
        "conversion.started",
        "conversion.succeeded",
        "file.updated",
        "conversion.started",
        "conversion.failed",
        "file.deleted",
    ]
    assert [event["sequence"] for event in events] == list(range(1, 12))
    assert {event["workspaceId"] for event in events} == {files.workspace}
    assert {(event["actor"], event["clientId"]) for event in events if ".conversion." in event["type"]} == {
        ("system", None)
    }
    assert {event["clientId"] for event in events if ".conversion." not in event["type"]} == {"tests"}
    assert events[0]["data"] == {"object": events[0]["data"]["object"], "previous": {}}
    assert events[2]["data"]["object"]["conversion"]["outputs"]
    assert events[3]["data"]["previous"] == {"fileName": "mass.csv"}
    assert events[4]["data"] == {
        "object": {"id": file, "workspaceId": files.workspace, "metadata": {"mass": 1.10}},
        "previous": {"metadata": {}},
    }
    assert set(events[7]["data"]["previous"]) == {
        "contentType",
        "fileName",
        "sha256",
        "size",
        "version",
        "versionId",
    }
    assert events[9]["data"]["object"]["conversion"]["errorClass"] == "user"
