"""The mqtt connector passes the conformance suite with a real broker."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.mqtt import MqttConnector, MqttOptions, connector
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig
from ingestd.sdk.testing.source_reader import read, records_of, rejects_of
from tests.support.mosquitto import Mosquitto, mosquitto


class BrokerRig(Rig):
    """A session in which seven messages wait."""

    def __init__(self, broker: Mosquitto, folder: Path) -> None:
        self._broker = broker
        self._folder = folder
        self._opened: list[Connector] = []
        first = self.connector()
        (partition,) = first.partitions()
        assert list(first.read(partition, None)) == []
        broker.publish(*((f"bench/n/{number}", f'{{"mass": {number}.10}}') for number in range(7)))

    def connector(self) -> Connector:
        return self._open(self._broker.url)

    def add(self) -> None:
        self._broker.publish(("bench/n/8", '{"mass": 1e-7}'))

    def change(self) -> None:
        self._broker.publish(("bench/n/3", '{"mass": "changed"}'))

    def remove(self) -> None:
        raise AssertionError("nothing vanishes from a subscription")

    def add_unreadable(self) -> bool:
        self._broker.publish(("bench/n/9", '{"mass"'))
        return True

    def broken(self) -> Connector:
        return self._open("mqtt://127.0.0.1:1")

    def close(self) -> None:
        for one in self._opened:
            one.close()

    def _open(self, url: str) -> Connector:
        options = {"url": url, "topics": [{"filter": "bench/{bench}/+"}], "sync_seconds": 0.4}
        context = SourceContext(
            pipeline="t", base=self._folder, now=time.time, kept_folder=self._folder, until=math.inf
        )
        self._opened.append(MqttConnector(MqttOptions.model_validate(options), context))
        return self._opened[-1]


@pytest.fixture(scope="module")
def broker() -> Iterator[Mosquitto]:
    with mosquitto() as running:
        yield running


class TestMqtt(ConnectorConformance):
    @pytest.fixture
    def rig(self, broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
        monkeypatch.setattr(connector, "BATCH", 2)
        opened = BrokerRig(broker, tmp_path)
        yield opened
        opened.close()

    def test_an_unreadable_record_is_rejected_and_the_others_are_read(self, rig: Rig) -> None:
        """Unlike that of the suite, this reading does not begin again: the broker gives no stored message out."""
        opened = rig.connector()
        (partition, *_) = opened.partitions()
        before = read(opened, partition)
        rig.add_unreadable()
        rig.add()
        later = read(rig.connector(), partition, before[-1].cursor)
        ((_, fields),) = records_of(later)
        assert fields == {"mass": "1e-7", "mqtt.topic": "bench/n/8", "mqtt.part.bench": "n"}
        (reject,) = rejects_of(later)
        assert reject.position == 8
        assert reject.record == {"text": '{"mass"', "mqtt.topic": "bench/n/9", "mqtt.part.bench": "n"}
        assert "'bench/n/9' is not valid JSON" in reject.reason
