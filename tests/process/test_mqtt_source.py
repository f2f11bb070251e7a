"""The daemon over a real broker and a real workspace service: killed at any moment, every message with QoS 1 arrives.

``INGESTD_MQTT_KILLS`` is the number of kills; `make kill-test` runs 200.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support.daemon_process import Daemon, environment, here
from tests.support.mosquitto import Mosquitto, mosquitto
from tests.support.recorded_workspaced import RecordedWorkspaced

KILLS = int(os.environ.get("INGESTD_MQTT_KILLS", "3"))
UPDATES = 5_000
KEYS = 100


def publish_all(broker: Mosquitto, wanted: dict[str, str], kills: threading.Semaphore) -> None:
    """Publish the updates in as many parts as there are kills; each 20th message has a topic of its own."""
    rng = random.Random(15)
    with broker.publisher() as client:
        for number in range(UPDATES):
            channel = f"once{number}" if number % 20 == 0 else f"c{rng.randrange(KEYS)}"
            value = f"{number}.10" if rng.random() < 0.5 else "0.10"
            wanted[f"north.{channel}"] = value
            info = client.publish(f"bench/north/{channel}", value, qos=1)
            if number % max(1, UPDATES // (KILLS + 1)) == 0:
                info.wait_for_publish(60)
                assert kills.acquire(timeout=120)
        client.publish("bench/north/end", "1", qos=1).wait_for_publish(60)
    wanted["north.end"] = "1"


@pytest.mark.slow
@pytest.mark.timeout(240 + 20 * KILLS)
def test_every_message_arrives_although_the_daemon_is_killed_again_and_again(tmp_path: Path) -> None:
    rng = random.Random(7)
    wanted: dict[str, str] = {}
    kills = threading.Semaphore(1)
    with mosquitto() as broker, RecordedWorkspaced(tmp_path / "workspaced") as service:
        source = {
            "connector": "mqtt",
            "url": broker.url,
            "topics": [{"filter": "bench/{bench}/{channel}"}],
            "sync_seconds": 1,
        }
        entries = {"key": "{mqtt.part.bench}.{mqtt.part.channel}", "value": "{value}"}
        service.write_configuration(tmp_path, {"name": "bench", "source": source, "entries": entries}, label="Values")
        assert here(tmp_path, "sync").returncode == 0  # makes the session
        publisher = threading.Thread(target=publish_all, args=(broker, wanted, kills))
        publisher.start()
        for _ in range(KILLS):
            daemon = Daemon(["ingestd", "run"], env=environment(tmp_path), cwd=tmp_path)
            try:
                kills.release()  # the next part is published
                if rng.random() < 0.8:
                    daemon.wait_for("partition_read")
                time.sleep(rng.uniform(0, 0.3))  # the moment of the crash; no condition is waited for
                assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL, "\n".join(daemon.lines[-30:])
            finally:
                daemon.close()
        kills.release(KILLS + UPDATES)
        publisher.join(120)
        assert not publisher.is_alive()
        done = here(tmp_path, "sync")
        assert done.returncode == 0, done.stdout + done.stderr
        assert service.plain_values("Values") == wanted
        assert len(wanted) == KEYS + UPDATES // 20 + 1


@pytest.mark.timeout(240)
def test_messages_that_wait_for_their_delivery_survive_the_loss_of_the_host_and_its_disk(tmp_path: Path) -> None:
    with mosquitto() as broker, RecordedWorkspaced(tmp_path / "workspaced") as service:
        source = {
            "connector": "mqtt", "url": broker.url, "topics": [{"filter": "bench/{channel}"}], "sync_seconds": 1,
            "client_id": "bench-north", "acknowledge": "delivered",
        }  # fmt: skip
        entries = {"key": "{mqtt.part.channel}", "value": "{value}"}
        service.write_configuration(tmp_path, {"name": "bench", "source": source, "entries": entries}, label="Values")
        assert here(tmp_path, "sync").returncode == 0  # makes the session
        wanted = {f"c{number}": str(number) for number in range(300)}
        with broker.publisher() as client:
            for channel, value in wanted.items():
                client.publish(f"bench/{channel}", value, qos=1).wait_for_publish(60)
        for _ in range(2):
            daemon = Daemon(["ingestd", "run"], env=environment(tmp_path), cwd=tmp_path)
            try:
                daemon.wait_for("partition_read")
                assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL, "\n".join(daemon.lines[-30:])
            finally:
                daemon.close()
            for file in tmp_path.glob("ingestd.db*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        done = here(tmp_path, "sync")
        assert done.returncode == 0, done.stdout + done.stderr
        assert service.plain_values("Values") == wanted
