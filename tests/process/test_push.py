"""The real daemon is killed while clients send: every 2xx is durable, and each record ends in the sink once."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.daemon_process import here, running_daemon
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import listening_daemon, pipeline, write_listening_configuration
from tests.support.push_client import SECRET, free_address, signed

ROUNDS = int(os.environ.get("INGESTD_KILL_ROUNDS", "2"))
CLIENTS = 3
SECONDS = 60.0


class Sender:
    """A client that sends each message until it gets a 2xx. ``acknowledged``: the keys of those messages."""

    def __init__(self, name: str, url: str) -> None:
        self._name = name
        self._url = url
        self.acknowledged: list[str] = []
        self.statuses: set[int] = set()
        self.over = threading.Event()
        self.progress = threading.Event()

    def run(self) -> None:
        with httpx.Client(timeout=SECONDS) as client:
            for number in itertools.count():
                key = f"{self._name}-{number}"
                if not self._send(client, key):
                    return
                self.acknowledged.append(key)
                self.progress.set()

    def _send(self, client: httpx.Client, key: str) -> bool:
        body = json.dumps({"part": key, "mass": 1}).encode()
        while not self.over.is_set():
            try:
                status = client.post(self._url, content=body, headers=signed(body, key)).status_code
            except httpx.TransportError:
                self.over.wait(0.01)  # the daemon was killed; it starts again
                continue
            self.statuses.add(status)
            if status == 204:
                return True
            self.over.wait(0.01)
        return False


@contextmanager
def sent_while_killed(
    folder: Path, *, after: Callable[[], None] = lambda: None, **options: str
) -> Iterator[tuple[DocumentServer, Path, list[Sender]]]:
    """Kill the daemon again and again while clients send; yield the service, the configuration and the clients.

    ``after`` is called after each kill. ``options`` are further ones of the source.
    """
    address = free_address()
    source = {
        "connector": "push", "address": address, "path": "/bench", "requests_per_second": 10_000,
        "auth": {"type": "hmac", "secret": SECRET}, **options,
    }  # fmt: skip
    described = {**pipeline("pushed", {}), "source": source}
    senders = [Sender(f"c{n}", f"http://{address}/bench") for n in range(CLIENTS)]
    with DocumentServer() as server, ThreadPoolExecutor(CLIENTS) as threads:
        server.workspace("Bench")
        config = write_listening_configuration(folder, server.url, [described])
        sending = [threads.submit(sender.run) for sender in senders]
        try:
            for _ in range(ROUNDS):
                with running_daemon(folder, "run", "-c", str(config), NOTIFY_SOCKET="") as (daemon, _):
                    for sender in senders:
                        sender.progress.clear()
                        assert sender.progress.wait(SECONDS), daemon.lines[-20:]
                    daemon.process.send_signal(signal.SIGKILL)
                    daemon.ended()
                after()
        finally:
            for sender in senders:
                sender.over.set()
        for one in sending:
            one.result(SECONDS)
        yield server, config, senders


def acknowledged(senders: Iterable[Sender]) -> set[str]:
    """Return the keys of the acknowledged messages."""
    return {f"pushed.{key}" for sender in senders for key in sender.acknowledged}


@pytest.mark.timeout(60 * (ROUNDS + 2))
def test_no_acknowledged_message_is_lost_or_stored_twice_while_the_daemon_is_killed(tmp_path: Path) -> None:
    with sent_while_killed(tmp_path) as (server, config, senders):
        with listening_daemon(tmp_path, config) as (daemon, client):
            while 'ingestd_source_connected{pipeline="pushed"} 1.0' not in client.get("/metrics").text:
                time.sleep(0.02)  # sources start after the listener, and no event says that this one listens
            assert daemon.stop() == 0
        assert here(tmp_path, "sync", "-c", str(config)).returncode == 0  # delivers what is pending
        assert acknowledged(senders) <= delivered(server).keys()
        assert set().union(*(sender.statuses for sender in senders)) <= {204, 503}
        assert set(delivered(server).values()) == {"1"}
    # The number of stored records equals that of the keys, so no repetition was stored.
    with closing(sqlite3.connect(tmp_path / "var" / "ingestd.db")) as state:
        ((cursor, keys),) = state.execute("SELECT p.cursor, (SELECT count(*) FROM entry) FROM partition p")
    assert json.loads(cursor)["records"] == keys


@pytest.mark.timeout(60 * (ROUNDS + 2))
def test_what_was_acknowledged_as_delivered_survives_the_loss_of_the_host_and_its_disk(tmp_path: Path) -> None:
    def lose_disk() -> None:
        shutil.rmtree(tmp_path / "var")

    with sent_while_killed(tmp_path, after=lose_disk, acknowledge="delivered") as (server, _, senders):
        assert len(acknowledged(senders)) >= ROUNDS * CLIENTS
        assert acknowledged(senders) <= delivered(server).keys()


def delivered(server: DocumentServer) -> dict[str, str | None]:
    """Return the entries of the one sink."""
    return {key: value for key, (value, _) in server.store.values(server.store.by_label("Sink pushed")[0]).items()}
