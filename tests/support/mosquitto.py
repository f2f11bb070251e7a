"""A Mosquitto broker of Debian's package for one test, on a free port. The test can kill and restart it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

_SECONDS = 60.0


class Mosquitto:
    """A broker with unlimited queues. ``settings``: further lines of its configuration."""

    def __init__(self, folder: Path, settings: Iterable[str], *, persistent: bool, anonymous: bool) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            "per_listener_settings false",
            f"allow_anonymous {str(anonymous).lower()}",
            "max_inflight_messages 0",
            "max_queued_messages 0",
            *(
                [f"persistence true\npersistence_location {folder}/\nautosave_interval 1\nautosave_on_changes true"]
                * persistent
            ),
            *([f"user {_account()}"] if os.geteuid() == 0 else []),
            f"listener {self.port} 127.0.0.1",
            *settings,
        ]
        (folder / "conf").write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            pytest.skip("no mosquitto to test with: install Debian's package mosquitto")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(self._folder / "conf")], stdout=log, stderr=log)
        end = time.monotonic() + _SECONDS
        while True:  # an open port is the only signal that the broker has started
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
            except OSError:
                assert time.monotonic() < end, self.log()[-2000:]
                time.sleep(0.02)
            else:
                return

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_SECONDS)
            self._process = None

    def restart(self, number: int = signal.SIGTERM) -> None:
        self.stop(number)
        self.start()

    def log(self) -> str:
        return (self._folder / "log").read_text()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def publish(self, *messages: tuple[str, str | bytes], qos: int = 1, retain: bool = False) -> None:
        """Publish messages in order; return when the broker has received all messages."""
        with self.publisher() as client:
            for info in [client.publish(topic, payload, qos=qos, retain=retain) for topic, payload in messages]:
                info.wait_for_publish(_SECONDS)
                assert info.is_published()

    @contextmanager
    def publisher(self) -> Iterator[Client]:
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        client.max_inflight_messages_set(200)
        connected = threading.Event()
        client.on_connect = lambda *_: connected.set()
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        try:
            assert connected.wait(_SECONDS)  # a message that is sent before the connection counts as not published
            yield client
        finally:
            client.disconnect()
            client.loop_stop()


@contextmanager
def mosquitto(*settings: str, persistent: bool = False, anonymous: bool = True) -> Iterator[Mosquitto]:
    """Run a broker with its files in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mosquitto-") as name:
        folder = Path(name)
        broker = Mosquitto(folder, settings, persistent=persistent, anonymous=anonymous)
        if os.geteuid() == 0:
            for path in (folder, folder / "conf"):
                shutil.chown(path, _account())
        broker.start()
        try:
            yield broker
        finally:
            broker.stop(signal.SIGKILL)


def permit(folder: Path, *files: Path) -> None:
    """Permit the account of the broker to read files in a test's temporary folder, also if the test runs as root."""
    for file in files:
        file.chmod(0o644)
    for one in (folder, *folder.parents):
        if os.geteuid() == 0 and one.is_relative_to("/tmp/pytest-of-root"):
            one.chmod(0o755)


def _account() -> str:
    return "mosquitto"
