"""SFTP against a hostile or failing server: host keys, log-ins, cuts, links and names."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.remote import RemoteConnector
from connectors.remote.request_loop import RequestLoop
from ingestd.sdk import Partition, SourceBroken, SourceUnavailable
from ingestd.sdk.testing.wire_proxy import WireProxy
from tests.support.sftp_server import SftpServer

Open = Callable[..., RemoteConnector]


@pytest.fixture
def folder(sftp_server: SftpServer, tmp_path: Path) -> Path:
    found = sftp_server.files / f"{tmp_path.parent.name}-{tmp_path.name}"
    found.mkdir()
    return found


@pytest.fixture
def connect_sftp(sftp_server: SftpServer, folder: Path, connect: Open, tmp_path: Path) -> Open:
    def opened(port: int = 0, **options: Any) -> RemoteConnector:
        known = tmp_path / "known_hosts"
        key = (sftp_server.folder / "host.pub").read_text()
        if not known.exists():
            known.write_text(f"[127.0.0.1]:{port or sftp_server.port} {key}")
        settings = sftp_server.options(folder.name, known_hosts=str(known)) | options
        if port:
            settings["url"] = settings["url"].replace(f":{sftp_server.port}/", f":{port}/")
        return connect(settings)

    return opened


def names(connector: RemoteConnector) -> list[str]:
    return [partition.name for partition in connector.partitions()]


def fingerprint(path: Path) -> str:
    shown = subprocess.run(["ssh-keygen", "-lf", path], check=True, capture_output=True, text=True).stdout
    return shown.split()[1]


def test_a_changed_host_key_is_a_sentence_with_both_fingerprints_and_no_retry(
    sftp_server: SftpServer, folder: Path, connect_sftp: Open, tmp_path: Path
) -> None:
    (folder / "a.csv").write_text("part,mass\nA,1\n")
    with WireProxy(sftp_server.port) as proxy:
        connector = connect_sftp(proxy.port)
        assert names(connector) == ["a.csv"]
        sftp_server.stop()
        sftp_server.start(key="other-host")
        try:
            with pytest.raises(SourceBroken) as refused:
                names(connector)
            for key in ("host.pub", "other-host.pub"):
                assert fingerprint(sftp_server.folder / key) in str(refused.value)
            before = proxy.connections
            for _ in range(5):
                with pytest.raises(SourceBroken, match="has the host key"):
                    names(connector)
            assert proxy.connections == before, "nothing is connected until a person acted"
            (step, *_) = connector.verify()
            assert step.outcome == "failed"
            other = (sftp_server.folder / "other-host.pub").read_text()
            (tmp_path / "known_hosts").write_text(f"# replaced\n[127.0.0.1]:{proxy.port} {other}")
            assert names(connector) == ["a.csv"], "the changed file ends the refusal"
        finally:
            sftp_server.stop()
            sftp_server.start()


def test_an_unknown_host_key_is_not_trusted(connect_sftp: Open, tmp_path: Path, sftp_server: SftpServer) -> None:
    (tmp_path / "known_hosts").write_text("# none\n")
    with pytest.raises(SourceBroken, match=r"is not in .*ssh-keyscan -p") as refused:
        names(connect_sftp())
    assert fingerprint(sftp_server.folder / "host.pub") in str(refused.value)


def test_a_refused_user_is_not_tried_again_until_reload(
    sftp_server: SftpServer, connect_sftp: Open, tmp_path: Path
) -> None:
    with WireProxy(sftp_server.port) as proxy:
        connector = connect_sftp(proxy.port, key_file=str(sftp_server.folder / "other-host"))
        for _ in range(3):
            with pytest.raises(SourceBroken, match=r"refuses the user .* attempts may lock the account"):
                names(connector)
        assert proxy.connections == 1
        connector.resume()
        with pytest.raises(SourceBroken, match="refuses the user"):
            names(connector)
        assert proxy.connections == 2
    missing = connect_sftp(key_file=str(tmp_path / "none"))
    with pytest.raises(SourceBroken, match=r"key_file .*none can't be read"):
        names(missing)


def test_a_listing_that_is_cut_removes_and_forgets_nothing(
    sftp_server: SftpServer, folder: Path, connect_sftp: Open
) -> None:
    for number in range(600):
        (folder / f"a-file-with-a-rather-long-name-{number:04}.csv").write_text("part,mass\nA,1\n")
    with WireProxy(sftp_server.port) as proxy:
        connector = connect_sftp(proxy.port, settle_seconds=0)
        assert len(names(connector)) == 600
        known = list(connector._state.found.files)
        for left in (100, 5_000, 40_000):
            proxy.left = left
            with pytest.raises(SourceUnavailable, match="is not reachable"):
                names(connector)
            assert list(connector._state.found.files) == known
        proxy.left = None
        assert len(names(connector)) == 600, "the next pass connects again"


def test_a_lost_idle_connection_is_opened_again_without_an_error(
    sftp_server: SftpServer, folder: Path, connect_sftp: Open
) -> None:
    (folder / "a.csv").write_text("part,mass\nA,1\n")
    connector = connect_sftp()
    assert list(connector.read(Partition(name="a.csv"), None))
    sftp_server.stop()
    sftp_server.start()
    assert connector.holds("a.csv")
    assert connector.describe_location("b.csv", {}).startswith("it is not in")


def test_a_stalled_server_ends_soon_when_the_daemon_stops(
    sftp_server: SftpServer, folder: Path, connect_sftp: Open
) -> None:
    (folder / "a.csv").write_bytes(b"part,mass\n" + b"A,1\n" * 200_000)
    with WireProxy(sftp_server.port) as proxy:
        connector = connect_sftp(proxy.port)
        assert names(connector) == ["a.csv"]
        proxy.what, proxy.left = "stall", 100_000
        raised: list[Exception] = []

        def read() -> None:
            try:
                list(connector.read(Partition(name="a.csv"), None))
            except SourceUnavailable as error:
                raised.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        assert proxy.reached.wait(30)
        connector.interrupt()
        thread.join(30)
        assert not thread.is_alive()
        assert len(raised) == 1


def test_a_server_that_is_silent_is_given_up(sftp_server: SftpServer, folder: Path, connect_sftp: Open) -> None:
    with WireProxy(sftp_server.port) as proxy:
        proxy.what, proxy.left = "stall", 10
        with pytest.raises(SourceUnavailable, match="can't be reached"):
            names(connect_sftp(proxy.port, timeout_seconds=0.5))


def test_links_and_hostile_names_are_skipped_with_a_reason(folder: Path, connect_sftp: Open, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "s.csv").write_text("part,mass\nSECRET,1\n")
    (folder / "a.csv").write_text("part,mass\nA,1\n")
    (folder / "link.csv").symlink_to(secret / "s.csv")
    (folder / "below").symlink_to(secret)
    (folder / "line\nbreak.csv").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.csv")).write_text("x")
    connector = connect_sftp(recursive=True)
    assert names(connector) == ["a.csv"]
    (notice,) = [one for one in connector.notices() if "skipped (" in one]
    for reason in ("link.csv: it is a link", "control characters", "not UTF-8"):
        assert reason in notice
    for name in ("../secret/s.csv", "below/../a.csv", "/etc/passwd", "a\0.csv"):
        with pytest.raises(SourceBroken, match="can't be read"):
            list(connector.read(Partition(name=name), None))
    with pytest.raises(SourceBroken, match="by a link"):
        list(connector.read(Partition(name="below/s.csv"), None))
    assert list(connector.read(Partition(name="link.csv"), None)) == []


def test_a_file_that_is_written_while_it_is_copied_is_read_again(
    folder: Path, connect_sftp: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "a.csv"
    path.write_bytes(b"part,mass\n" + b"A,1\n" * 400_000)
    connector = connect_sftp()
    assert names(connector) == ["a.csv"]
    run = RequestLoop.run
    files = connector._drop

    def growing(*args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        with path.open("ab") as file:  # between the status of the file and its copy
            file.write(b"B,2\n")
        return run(*args, **more)

    identity = files.file("a.csv")
    identity.status()
    monkeypatch.setattr(RequestLoop, "run", growing)
    with pytest.raises(SourceUnavailable, match=r"replaced or written to while it was read"):
        identity.open()
    assert names(connector) == ["a.csv"]
    assert sum(batch.records.height for batch in connector.read(Partition(name="a.csv"), None)) == 400_001


def test_files_of_one_second_and_files_that_appear_late_are_all_read(folder: Path, connect_sftp: Open) -> None:
    connector = connect_sftp()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("part,mass\nA,1\n")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    found = {name: list(connector.read(Partition(name=name), None))[-1].cursor for name in names(connector)}
    assert sorted(found) == ["a.csv", "b.csv"]
    for name, seconds in (("late.csv", 1_000_000), ("future.csv", 4_200_000_000)):
        (folder / name).write_text("part,mass\nL,1\n")
        os.utime(folder / name, (seconds, seconds))
    for name in ("a.csv", "b.csv"):
        assert list(connector.read(Partition(name=name), found[name])) == []
    assert names(connector) == ["late.csv", "future.csv"]


def test_a_file_is_stable_only_after_it_was_observed_because_clocks_differ(folder: Path, connect_sftp: Open) -> None:
    (folder / "a.csv").write_text("part,mass\nA,1\n")
    connector = connect_sftp(settle_seconds=5)
    assert names(connector) == [], "its time is that of another clock"
    assert connector.waiting() == 5
    now = time.time()
    assert now < connector.context.now(), "by its own clock the file is old"


def test_a_file_that_the_server_does_not_permit_to_be_moved_stays_with_a_reason(
    folder: Path, connect_sftp: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.csv").write_text("part,mass\nA,1\n")
    (folder / "done").write_text("a file in the place of the archive")
    connector = connect_sftp(after="archive", archive="done")
    from ingestd.sdk.testing import acknowledgement

    (partition,) = connector.partitions()
    cursor = list(connector.read(partition, None))[-1].cursor
    with pytest.raises(SourceUnavailable, match=r"done is not a folder: move it away"):
        connector.acknowledge(partition, cursor, acknowledgement())
    assert (folder / "a.csv").exists()
