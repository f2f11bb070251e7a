"""How many requests a bucket gets, and servers with listings that state ETags and times in other forms than their headers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connectors.remote import RemoteConnector
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Partition, Rejected, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.refusing_proxy import refusing_proxy
from tests.support.scripted_bucket import ScriptedBucket

Open = Callable[..., RemoteConnector]


@pytest.fixture
def connect_bucket(bucket: ScriptedBucket, connect: Open) -> Open:
    return lambda **more: connect(bucket.options(**more))


def reader_of(connector: RemoteConnector, mirror: SqliteMirror) -> Reader:
    return Reader(
        pipeline="t", connector=connector, mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda _: None,
    )  # fmt: skip


@pytest.mark.parametrize("listed_etag", ["&quot;{}&quot;", "{}", "W/&quot;{}&quot;"])
def test_a_listing_with_another_form_of_etag_and_time_is_read_once(
    bucket: ScriptedBucket, connect_bucket: Open, listed_etag: str
) -> None:
    bucket.listed_etag = listed_etag
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\n"
    connector = connect_bucket()
    (partition,) = connector.partitions()
    (batch,) = connector.read(partition, None)
    assert batch.records.rows() == [("A", "1")]
    assert list(connect_bucket().read(partition, batch.cursor)) == [], (
        "a new connector asks the server, and it is the same file"
    )


def test_reading_and_restarting_need_no_request_besides_the_listing_and_the_content(
    bucket: ScriptedBucket, connect_bucket: Open, tmp_path: Path
) -> None:
    bucket.objects |= {f"drop/f{number}.csv": f"part,mass\nA{number},1\n".encode() for number in range(50)}
    with closing(SqliteMirror.open(tmp_path / "state.db")) as mirror:
        first = reader_of(connect_bucket(), mirror)
        assert len(first.read_pass().read) == 50
        assert bucket.requests == {"LIST": 1, "GET": 50}
        bucket.requests.clear()
        bucket.objects["drop/new.csv"] = b"part,mass\nN,1\n"
        assert len(reader_of(connect_bucket(), mirror).read_pass().read) == 1
        assert bucket.requests == {"LIST": 1, "GET": 1}, (
            "after a restart, the listing shows which objects are unchanged"
        )


def test_the_acknowledgement_of_a_file_that_stays_needs_no_request(
    bucket: ScriptedBucket, connect_bucket: Open
) -> None:
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\n"
    connector = connect_bucket()
    (partition,) = connector.partitions()
    (batch,) = connector.read(partition, None)
    bucket.requests.clear()
    connector.acknowledge(partition, batch.cursor, acknowledgement())
    assert not bucket.requests
    assert list(connector.partitions()) == []


def test_a_file_that_is_listed_and_never_acquired_is_a_notice_after_a_minute(
    bucket: ScriptedBucket, connect_bucket: Open, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\n"
    connector = connect_bucket()
    monkeypatch.setattr(connector._state, "is_as_scanned", lambda *_: False)
    for _ in range(3):
        assert [list(connector.read(partition, None)) for partition in connector.partitions()] == [[]]
        clock[0] += 40
    (notice,) = connector.notices()
    assert "a.csv has been in the folder for 120 seconds and can't be read. When it is opened" in notice
    assert connector.explain("a.csv") == notice
    assert connector.count_waiting()["unreadable"] == 1
    assert [one.sentence for one in connector.list_waiting(5)] == [notice]
    monkeypatch.undo()
    (partition,) = connector.partitions()
    assert list(connector.read(partition, None))
    assert list(connector.notices()) == []


def test_an_object_that_is_listed_and_can_not_be_requested_is_a_notice(
    bucket: ScriptedBucket, connect_bucket: Open, clock: list[float]
) -> None:
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\n"
    connector = connect_bucket()
    partitions: list[Partition] = [*connector.partitions()]
    bucket.objects["drop/b.csv"] = bucket.objects.pop("drop/a.csv")  # a server that lists names that it can't find
    assert list(connector.read(partitions[0], None)) == []
    clock[0] += 60
    (notice,) = connector.notices()
    assert "there is no such file when it is opened" in notice


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "SignatureDoesNotMatch", "secret_key does not belong to access_key. Correct it."),
        (403, "InvalidAccessKeyId", "The server does not know access_key."),
        (403, "AccessDenied", "their permissions: to list and read"),
        (403, "RequestTimeTooSkewed", "The clock of this machine is wrong."),
        (400, "AuthorizationHeaderMalformed", "Correct region"),
        (301, "PermanentRedirect", "Correct region"),
        (403, "SomethingNew", "access is denied (SomethingNew)"),
    ],
)
def test_an_error_of_a_server_names_what_to_do(
    bucket: ScriptedBucket, connect_bucket: Open, status: int, code: str, remedy: str
) -> None:
    bucket.fault = (status, f"<Error><Code>{code}</Code><Message>SECRET-SIGNATURE</Message></Error>")
    step = next(step for step in connect_bucket().verify() if step.outcome == "failed")
    assert remedy in step.sentence
    assert "SECRET" not in step.sentence


def test_a_server_that_is_not_there_is_named_with_its_reason(connect_bucket: Open) -> None:
    step = next(step for step in connect_bucket(endpoint="http://127.0.0.1:1", timeout_seconds=0.2).verify())
    assert "can't be reached: Connection refused. Check endpoint" in step.sentence


@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_a_configured_key_is_not_combined_with_credentials_of_the_environment(
    bucket: ScriptedBucket, connect_bucket: Open, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    for name in ("AWS_SESSION_TOKEN", "AZURE_STORAGE_TOKEN"):
        monkeypatch.setenv(name, "token-of-the-environment")
    for name in ("AWS_SKIP_SIGNATURE", "AZURE_SKIP_SIGNATURE"):
        monkeypatch.setenv(name, "true")
    list(connect_bucket(url=f"{scheme}://bench/drop", secret_key="c2VjcmV0").verify())
    shown = {"s3": "AWS4-HMAC-SHA256 Credential=test/", "az": "SharedKey test:"}[scheme]
    assert bucket.heads[0]["authorization"].startswith(shown)
    assert "token-of-the-environment" not in str(bucket.heads)


@pytest.mark.parametrize(
    ("scheme", "endpoint", "host"),
    [
        ("s3", "", "s3.eu-west-1.amazonaws.com:443"),
        ("s3", "https://store.invalid", "store.invalid:443"),
        ("az", "", "test.blob.core.windows.net:443"),
        ("az", "https://store.invalid", "store.invalid:443"),
        ("gs", "", "storage.googleapis.com:443"),
        ("gs", "https://store.invalid", "store.invalid:443"),
    ],
)
def test_no_variable_of_the_environment_leads_to_another_server(
    connect: Open, monkeypatch: pytest.MonkeyPatch, scheme: str, endpoint: str, host: str
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"):
        monkeypatch.setenv(name, "https://elsewhere.invalid")
    monkeypatch.setenv("GOOGLE_BASE_URL", "https://elsewhere.invalid")
    for name in ("AZURE_STORAGE_USE_EMULATOR", "GOOGLE_SKIP_SIGNATURE"):
        monkeypatch.setenv(name, "true")
    settings = {"access_key": "test", "secret_key": "c2VjcmV0", "region": "eu-west-1", "endpoint": endpoint}
    with refusing_proxy(monkeypatch) as hosts:
        list(connect({"url": f"{scheme}://bench/drop", "timeout_seconds": 1} | settings).verify())
    assert set(hosts) == {host}


def test_no_variable_of_the_environment_leads_to_another_bucket(
    bucket: ScriptedBucket, connect_bucket: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\n"
    assert len(list(connect_bucket().partitions())) == 1
    assert bucket.targets[0].startswith("/bench?")


def test_a_temporary_folder_that_was_removed_is_not_taken_for_an_object_that_was_removed(
    bucket: ScriptedBucket, connect_bucket: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.objects["drop/a.csv"] = b"part,mass\nA,1\nB\n"
    connector = connect_bucket(quarantine="/bad", after="archive", archive="/done")
    (partition,) = connector.partitions()
    (batch,) = connector.read(partition, None)
    rejected = Rejected(reference="1", subject="record", position=2, reason="It has too few fields.")
    bucket.requests.clear()
    monkeypatch.setattr(tempfile, "tempdir", "/absent")
    with pytest.raises(SourceUnavailable, match=r"temporary folder \(TMPDIR\) can't be used: No such file"):
        list(connect_bucket().read(partition, None))
    with pytest.raises(SourceUnavailable, match=r"temporary folder \(TMPDIR\) can't be used: No such file"):
        connector.acknowledge(partition, batch.cursor, acknowledgement(rejects=[rejected], records=2))
    assert bucket.requests.keys() <= {"LIST", "HEAD", "GET"}, "nothing was moved without its rejected rows"
