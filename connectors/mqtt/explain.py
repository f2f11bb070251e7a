"""The sentences of `ingestd why` about the broker and about a topic."""

from __future__ import annotations

from collections import OrderedDict

from connectors.mqtt.options import MqttOptions
from ingestd.sdk import moment

_MOST_TOPICS = 10_000


class TopicTimes(OrderedDict[str, float]):
    """Arrival time of the last message of each of the 10,000 latest topics, in epoch seconds. Only one thread may write."""

    def note(self, topic: str, at: float) -> None:
        """Record that a message of the topic arrived at the time ``at``."""
        self[topic] = at
        self.move_to_end(topic)
        if len(self) > _MOST_TOPICS:
            self.popitem(last=False)


def explain_topic(options: MqttOptions, topic: str, times: TopicTimes, *, connection: str, waiting: int) -> str | None:
    """Return sentences about the subscription and the last message of a topic; None if no subscription covers the topic.

    ``connection``: a sentence about the connection. ``waiting``: the source's number of messages that are not stored yet.
    """
    pairs = zip(options.filters, options.topics, strict=True)
    found = next((pair for pair in pairs if pair[0].match(topic) is not None), None)
    if found is None:
        return None
    last = times.get(topic)
    arrived = (
        f"Its last message arrived {moment(last)}."
        if last is not None
        else "No message of this topic arrived in this process."
    )
    return (
        f"The subscription {found[1].filter} with QoS {found[1].qos} covers the topic {topic}. {connection} {arrived}"
        f"{waiting_sentence(waiting)}"
    )


def waiting_sentence(waiting: int) -> str:
    """Return a sentence with the number of messages that are not stored yet; empty if all are stored."""
    return f" Messages of this source that are not stored yet: {waiting}." if waiting else ""
