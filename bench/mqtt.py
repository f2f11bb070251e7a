"""Messages of a broker that waits for acknowledgements, received by the daemon and by a client that stores nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from bench import sample
from bench.child import ChildFailed
from bench.cold import arrived
from bench.daemon import site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.rounds import Options, surroundings_note
from tests.support.mosquitto import Mosquitto, mosquitto

MESSAGES = 5_000
GOAL = 1_000
"""Messages a second from a broker that allows one message in flight."""
IN_FLIGHT = (1, 20)
_GOAL_NAME = "the goal"
_TOPIC = "bench/line"
_DEADLINE_SECONDS = 60.0


def measure(options: Options) -> Report:
    figures = Rounds()
    ndjson = options.folder / "lines.ndjson"
    sample.write_ndjson(ndjson, MESSAGES)
    lines = ndjson.read_bytes().splitlines()
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            figures.add(_GOAL_NAME, GOAL)
            for in_flight in IN_FLIGHT:
                with mosquitto(f"max_inflight_messages {in_flight}", "log_type subscribe") as broker:
                    _ours(figures, in_flight, folder / f"ours-{in_flight}", counting, broker, lines)
                    _bare(figures, in_flight, broker, lines)
    return _report(options, figures)


def _ours(  # noqa: PLR0917 - all values of a round
    figures: Rounds, in_flight: int, folder: Path, counting: Counting, broker: Mosquitto, lines: list[bytes]
) -> None:
    source = {"connector": "mqtt", "url": broker.url, "topics": [{"filter": _TOPIC}]}
    made = site(folder, counting, key="{key}", value="{value}", source=source, schedule={})
    with made.daemon() as child:
        _wait_for_subscription(broker)
        counting.start_anew()
        used, started = child.cpu_seconds(), time.monotonic()
        broker.publish(*((_TOPIC, line) for line in lines))
        arrived(_ours_name(in_flight), counting, len(lines))
        tally = counting.tally()
        check_counted(tally, len(lines), sample.wrong_values(tally.sampled, len(lines)))
        figures.add(_ours_name(in_flight), len(lines) / ((tally.last_at or started) - started))
        figures.add(f"{_ours_name(in_flight)} cpu", child.cpu_seconds() - used)


def _wait_for_subscription(broker: Mosquitto) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while f" {_TOPIC}" not in broker.log():
        if time.monotonic() > deadline:
            raise ChildFailed("the daemon did not subscribe")
        time.sleep(0.02)


def _bare(figures: Rounds, in_flight: int, broker: Mosquitto, lines: list[bytes]) -> None:
    """Receive the messages with a client that acknowledges each message at once."""
    with _client(broker) as (received, done):
        started = time.monotonic()
        broker.publish(*((_TOPIC, line) for line in lines))
        if not done.wait(_DEADLINE_SECONDS):
            raise ChildFailed(f"the bare client received {len(received)} messages of {len(lines)}")
        figures.add(_bare_name(in_flight), len(lines) / (time.monotonic() - started))
        figures.add(f"{_bare_name(in_flight)} cpu", 0.0)


@contextmanager
def _client(broker: Mosquitto) -> Iterator[tuple[list[int], threading.Event]]:
    received: list[int] = []
    subscribed, done = threading.Event(), threading.Event()
    client: Any = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)

    def on_message(_client: object, _data: object, message: Any) -> None:
        received.append(message.mid)
        if len(received) == MESSAGES:
            done.set()

    client.on_message = on_message
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_connect = lambda *_: client.subscribe(_TOPIC, qos=1)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    try:
        if not subscribed.wait(_DEADLINE_SECONDS):
            raise ChildFailed("the bare client did not subscribe")
        yield received, done
    finally:
        client.disconnect()
        client.loop_stop()


def _ours_name(in_flight: int) -> str:
    return f"ingestd run, {in_flight} in flight"


def _bare_name(in_flight: int) -> str:
    return f"a client that stores nothing, {in_flight} in flight"


def _report(options: Options, figures: Rounds) -> Report:
    names = [name(in_flight) for in_flight in IN_FLIGHT for name in (_ours_name, _bare_name)]
    around = options.surroundings(figures)
    one = _ours_name(IN_FLIGHT[0])
    return Report(
        name="mqtt",
        title=f"mqtt: {MESSAGES} messages with QoS 1 from Mosquitto",
        header=("", "messages/s", "CPU seconds"),
        lines=[(name, figures.spread(name, whole), figures.spread(f"{name} cpu", seconds)) for name in names],
        ratios=(
            (f"one in flight: rate over {GOAL} a second", figures.ratio(one, _GOAL_NAME), "1 or more"),
            *(
                (f"{count} in flight: rate over the client", figures.ratio(_ours_name(count), _bare_name(count)), "")
                for count in IN_FLIGHT
            ),
        ),
        notes=[surroundings_note(around), "From the first publication until the counting server has the last entry."],
        summary=around | {"messages_per_second": {name: round(figures.median(name)) for name in names}},
    )
