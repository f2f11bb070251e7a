"""Settings that can't work are refused with their reason, and filters name the levels of topics."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from connectors.mqtt import MqttConnector, MqttOptions
from connectors.mqtt.options import TopicFilter, topic_facts

VALID: dict[str, Any] = {"url": "mqtt://broker", "topics": [{"filter": "a/+"}]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"topics": [{"filter": "a", "qos": 2}]}, "acknowledges messages with qos 2 before they are stored"),
        ({"topics": []}, "at least 1 item"),
        ({"topics": [{"filter": f"a/{n}"} for n in range(101)]}, "at most 100 items"),
        ({"topics": [{"filter": "a/{x}"}, {"filter": "a/+"}]}, "two topics have the same filter"),
        ({"topics": [{"filter": "$share/g/a"}]}, "shared subscription, which has no order"),
        ({"topics": [{"filter": "a/x{y}"}]}, "must be one name in braces"),
        ({"topics": [{"filter": "{a}/{a}"}]}, "has a name twice"),
        ({"topics": [{"filter": "a/#/b"}]}, "has # before its end"),
        ({"topics": [{"filter": "a/b+"}]}, "must be a whole level"),
        ({"topics": [{"filter": ""}]}, "is no topic filter"),
        ({"url": "http://broker"}, "begins with mqtt:// or mqtts://"),
        ({"url": "mqtt://user:secret@broker"}, "must not hold credentials"),
        ({"url": "mqtt://broker/topic"}, "a host and a port only"),
        ({"ca_file": "ca.pem"}, "needs an address with mqtts://"),
        ({"password": "s3cret"}, "password needs user"),
        ({"payload": {"type": "parquet"}}, "does not match any of the expected tags"),
        ({"max_payload_bytes": 2**24 + 1}, "less than or equal to 16777216"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        MqttOptions.model_validate(VALID | change)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "topic", "parts"),
    [
        ("bench/{bench}/+", "bench/n/mass", {"bench": "n"}),
        ("bench/{bench}/+", "bench/n", None),
        ("bench/{bench}/+", "bench/n/mass/x", None),
        ("bench/{bench}/#", "bench/n", {"bench": "n"}),
        ("bench/{bench}/#", "bench/n/mass/x", {"bench": "n"}),
        ("bench/{bench}/#", "bench", None),
        ("{site}/+", "/x", {"site": ""}),
        ("#", "$SYS/uptime", None),
        ("$SYS/{name}", "$SYS/uptime", {"name": "uptime"}),
    ],
)
def test_a_filter_matches_and_names_as_mqtt_defines(text: str, topic: str, parts: dict[str, str] | None) -> None:
    assert TopicFilter.parse(text).match(topic) == parts


def test_the_first_filter_that_matches_names_the_levels() -> None:
    filters = [TopicFilter.parse("a/{x}"), TopicFilter.parse("{y}/#")]
    assert topic_facts(filters, "a/1") == {"mqtt.topic": "a/1", "mqtt.part.x": "1"}
    assert topic_facts(filters, "b/1") == {"mqtt.topic": "b/1", "mqtt.part.y": "b"}
    assert topic_facts(filters[:1], "b/1") is None


def test_a_schedule_is_refused() -> None:
    assert "stays connected" in MqttConnector.schedule_refusal(MqttOptions.model_validate(VALID))
    assert MqttOptions.model_validate(VALID).port == 1883
    assert MqttOptions.model_validate(VALID | {"url": "mqtts://broker"}).port == 8883
