"""The mqtt connector: messages of subscriptions are read when they arrive, and acknowledged after they are stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, ClassVar

from connectors.mqtt.connection import BrokerAccessRefused, BrokerConnection, BrokerVersionRefused, Received
from connectors.mqtt.explain import TopicTimes, explain_topic, waiting_sentence
from connectors.mqtt.options import MqttOptions, Version
from connectors.mqtt.pending_messages import PendingMessages
from connectors.mqtt.records import RecordCollector, received_message
from connectors.mqtt.repetition import RepetitionFilter
from connectors.mqtt.session import SessionFile, StoredState
from ingestd.sdk import (
    Acknowledgement,
    Batch,
    ConnectionHealth,
    Connector,
    Cursor,
    Partition,
    SourceContext,
    SourceError,
    SourceUnavailable,
    Step,
)
from ingestd.sdk.streams import Inbox, InboxClosed, WakeCall

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

_UNCONFIRMED = -1
"""Stored instead of the QoS while a subscription is not confirmed. The broker may not have received the request."""
_LOST_WITH_3 = (
    "With MQTT 3.1.1 session_expiry has no effect: the broker alone decides how long it keeps messages. It may have many"
    " messages in flight; if it repeats some of the last 200, they are recognized. Its refusals have no reason."
)
BATCH = 1000
"""The maximum number of messages in a batch."""
_INBOX_MESSAGES = 10_000
_INBOX_BYTES = 64 * 2**20
_SHORT_SECONDS = 10.0
"""If a connection lasted less time, the next attempt waits, because some brokers end every connection at once."""
_PAUSE_SECONDS = 5.0
_REPEATED_SECONDS = 2.0
"""The maximum time for which messages that may be repeated are held. Later messages show whether they are repeated."""
_NEXT_SECONDS = 0.05
_READING_SECONDS = 1.0
"""The maximum duration of a reading in the daemon while messages arrive. Retries and new mappings wait for its end."""
_CONFIRM_SECONDS = 0.02
_LOOK_SECONDS = 1.0
"""The interval in which a reading that waits for messages checks the connection."""


class MqttConnector(Connector):
    """Subscriptions at one broker. The name of the only partition is the broker's address."""

    Options: ClassVar[type[MqttOptions]] = MqttOptions
    confirms_delivery = True
    options: MqttOptions

    def __init__(self, options: MqttOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        if options.ca_file is not None:
            self.options = options.model_copy(update={"ca_file": context.base / options.ca_file})
        self._filters = options.filters
        self._wake = WakeCall()
        self._inbox: Inbox[Received] = Inbox(max_items=_INBOX_MESSAGES, max_bytes=_INBOX_BYTES, wake=self._wake)
        self._pending = PendingMessages()
        self._lock = threading.Lock()
        self._connection: BrokerConnection | None = None
        self._connected_at: float | None = None
        """The time when the connection was made, in seconds since the epoch; None: not connected."""
        self._opened = 0.0
        self._confirming: BrokerConnection | None = None
        """The connection with subscriptions that the broker has not confirmed yet."""
        self._spoken: Version | None = None
        """The version of MQTT of the last accepted connection."""
        self._oldest: float | None = None
        self._refused = ""
        self._reason = ""
        """The reason why there is no connection."""
        self._notes: tuple[str, ...] = ()
        self._lost = ""
        self._topic_times = TopicTimes()

    @classmethod
    def schedule_refusal(cls, options: MqttOptions) -> str:  # noqa: ARG003 - the same for all
        """Return the sentence that a subscription stays open and needs no schedule."""
        return (
            "a subscription stays connected and reads each message when it arrives; remove schedule, or call `ingestd sync` at"
            " the times that you want"
        )

    def partitions(self) -> Iterable[Partition]:
        """Return the only partition. This sends no request."""
        return [Partition(name=self.options.address, snapshot=False, replayable=False)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        """Yield the messages that have arrived. A one-shot sync reads until no message arrives for ``sync_seconds``."""
        if self.context.unsaved is not None:
            raise SourceUnavailable(
                f"The messages of {self.options.address} are read by the daemon and by `ingestd sync` only, because a broker"
                " sends each message once."
            )
        if self._refused:
            raise BrokerAccessRefused(self._refused)
        session = SessionFile(self.context.keep("session"), self.context.pipeline, self.options.client_id)
        stored = StoredState.of(cursor, session.client_id)
        self._pending.commit(stored.number, waits_for_delivery=self._waits_for_delivery)
        self._pending.restart()
        repetitions = RepetitionFilter(stored.recent)
        has_begun = False
        for messages in self._arrivals(session, repetitions):
            collector = RecordCollector(self.options, stored.number)
            for count, (message, is_new) in enumerate(messages, start=1):
                if is_new:
                    collector.add(message)
                    stored.note(message)
                elif self._waits_for_delivery:
                    has_begun = True  # the end of the run checks whether the entries of this message are delivered
                stored.number = collector.number
                self._pending.add_to_batch(collector.number)
                if collector.is_full or (count == len(messages) and not collector.is_empty):
                    has_begun = True
                    yield collector.to_batch(stored.to_cursor(), last=False)
                    collector = RecordCollector(self.options, stored.number)
            self._pending.commit(waits_for_delivery=self._waits_for_delivery)
        if has_begun:
            yield RecordCollector(self.options, stored.number).to_batch(stored.to_cursor(), last=True)

    def _arrivals(self, session: SessionFile, repetitions: RepetitionFilter) -> Iterator[list[tuple[Received, bool]]]:
        """Yield the messages that arrive, in order, until the reading ends. Each has True if it is to be read."""
        began = quiet_since = self.context.elapsed()
        while not self.context.stopping.is_set():
            if not self._pending.taken and not len(self._inbox):
                self._connect(session)
            quiet = self.context.elapsed() - quiet_since
            if self._confirming is not None and not self._confirm(self._confirming, session):
                # Messages are read during this wait: a broker may confirm only after its messages are acknowledged.
                wait = _CONFIRM_SECONDS
            elif repetitions.holds:
                wait = _REPEATED_SECONDS - quiet
            else:
                wait = self._wait_seconds(quiet, since=began, has_read=quiet_since > began)
            if not self._pending.taken:
                self._take(wait)
            if self._pending.taken:
                quiet_since = self.context.elapsed()
                decided: list[tuple[Received, bool]] = []
                while self._pending.taken:
                    decided += repetitions.add(self._pending.decide())
                yield decided
            elif wait <= 0:
                if not repetitions.holds:
                    return
                yield list(repetitions.flush())

    def _wait_seconds(self, quiet: float, *, since: float, has_read: bool) -> float:
        """Return how long to wait for a message after ``quiet`` seconds, in a reading that began at ``since``.

        The first message wakes the daemon. A broker may send the next message only after the first is acknowledged. So the
        reading waits a moment for the next message: a commit for each message is faster than a reading for each message.
        """
        if self.context.until is None:
            return min(_NEXT_SECONDS - quiet, since + _READING_SECONDS - self.context.elapsed()) if has_read else 0.0
        return min(self.options.sync_seconds - quiet, self.context.until - self.context.elapsed())

    def _take(self, wait: float) -> None:
        connection = self._connection
        if wait > 0 and (connection is None or not connection.is_open):
            return
        self._pending.taken.extend(self._inbox.take(BATCH, wait_seconds=min(wait, _LOOK_SECONDS)))
        self._oldest = self._pending.taken[-1].arrived if self._pending.taken and len(self._inbox) else None

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: ARG002 - one partition
        """Acknowledge the messages up to the cursor, in the order in which they arrived."""
        self._pending.commit(StoredState.of(cursor, "").number, waits_for_delivery=self._waits_for_delivery)

    @property
    def _waits_for_delivery(self) -> bool:
        # A one-shot sync delivers after its reading. During the reading it must acknowledge messages to get more messages.
        return self.options.acknowledge == "delivered" and self.context.until is None

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002 - one partition
        """Acknowledge the messages up to the cursor, because their entries are delivered or rejected."""
        self._pending.deliver(StoredState.of(cursor, "").number)

    def _connect(self, session: SessionFile) -> None:
        """Connect and subscribe if there is no connection. Raise if the last connection ended with an error too early."""
        former = self._connection
        if former is not None:
            if former.is_open:
                return
            self._connected_at = None
            pause = former.retry_after or _PAUSE_SECONDS
            self._reason = former.reason
            if former.reason and self.context.elapsed() - self._opened < max(_SHORT_SECONDS, former.retry_after):
                self._connection = None
                raise SourceUnavailable(former.reason, retry_after=pause)
        self._confirming = None
        connection = self._open(session.client_id, receive=self._receive, ended=self._wake)
        self._opened = self.context.elapsed()
        self._pending.forget_undelivered()  # the broker sends these messages again
        with self._failing(connection):
            self._subscribe(connection, session)

    def _open(
        self,
        client_id: str,
        *,
        receive: Callable[[BrokerConnection, MQTTMessage], None],
        ended: Callable[[], None] = lambda: None,
    ) -> BrokerConnection:
        """Return an open connection with a version of MQTT that the broker accepts.

        ``client_id``: empty for an additional connection, which does not replace the connection of the source.
        """
        versions: tuple[Version, ...] = ("3.1.1",) if self._spoken == "3.1.1" else ("5", "3.1.1")
        for version in versions if self.options.version == "auto" else (self.options.version,):
            connection = BrokerConnection(
                self.options, client_id=client_id, version=version, receive=receive, ended=ended
            )
            with self._lock:
                if self.context.stopping.is_set():
                    raise SourceUnavailable("The reading was interrupted.")
                self._connection = connection if client_id else self._connection
            try:
                with self._failing(connection) if client_id else nullcontext():
                    connection.open()
            except SourceError as error:
                connection.close()
                is_refused = isinstance(error, BrokerVersionRefused) or (
                    connection.is_unanswered and self._spoken is None
                )
                if version == "3.1.1" or self.options.version != "auto" or not is_refused:
                    raise
            else:
                self._spoken = version
                return connection
        raise AssertionError("the last version returns or raises")

    @contextmanager
    def _failing(self, connection: BrokerConnection) -> Iterator[None]:
        """Close ``connection`` if an error is raised in the context, and store the reason."""
        try:
            yield
        except SourceError as error:
            self._connection = self._confirming = None
            self._reason = str(error)
            connection.close()
            if isinstance(error, BrokerAccessRefused):
                self._refused = (
                    f"{error} A running daemon makes no connection until `ingestd reload`, because attempts may lock the"
                    " account."
                )
                raise BrokerAccessRefused(self._refused) from None
            if isinstance(error, SourceUnavailable) and connection.was_up:  # the end of the connection wakes the source
                error.retry_after = max(error.retry_after, _PAUSE_SECONDS)
            raise

    @property
    def _wanted(self) -> dict[str, int]:
        """The configured subscriptions: filters with their QoS."""
        return {one.subscribed: topic.qos for one, topic in zip(self._filters, self.options.topics, strict=True)}

    def _subscribe(self, connection: BrokerConnection, session: SessionFile) -> None:
        """Request the subscriptions. `_confirm` evaluates the response."""
        wanted = self._wanted
        if session.filters and not connection.session_present:
            self._lost = (
                f"The broker {self.options.address} no longer had the session {session.client_id}: messages that were published"
                " before and not read are lost. Retained messages are read again. A broker loses sessions if it restarts without"
                " persistence, or after session_expiry."
            )
            self.context.log(self._lost)
        stale = set(session.filters) - set(wanted) if connection.session_present else set()
        if connection.version == "3.1.1" and connection.session_present:
            # An MQTT 3.1.1 broker sends retained messages at each request. Newer messages of the topic may have been read.
            wanted = {name: qos for name, qos in wanted.items() if session.filters.get(name) != qos}
        session.keep({**session.filters, **dict.fromkeys(wanted, _UNCONFIRMED)})
        connection.subscribe(wanted, retained=self.options.retained == "take", remove=stale)
        self._confirming = connection

    def _confirm(self, connection: BrokerConnection, session: SessionFile) -> bool:
        """Return whether the broker has confirmed the subscriptions. Raise like `BrokerConnection.granted`."""
        with self._failing(connection):
            notes = connection.granted()
        if notes is None:
            return False
        self._confirming = None
        self._connected_at = self.context.now()
        session.keep(self._wanted)
        if connection.session_expiry < self.options.session_expiry:
            notes.append(
                f"The broker {self.options.address} keeps messages for {connection.session_expiry} seconds only, not for"
                f" session_expiry: {self.options.session_expiry}."
            )
        self._notes = tuple(notes)
        return True

    def _receive(self, connection: BrokerConnection, message: MQTTMessage) -> None:
        """Put a message into the inbox, in the library's thread. If the inbox is full, wait, or drop a message with QoS 0."""
        received = received_message(
            connection, message, options=self.options, filters=self._filters, arrived=self.context.elapsed()
        )
        self._topic_times.note(received.topic, self.context.now())
        if self._oldest is None:
            self._oldest = received.arrived
        if message.qos:
            with suppress(InboxClosed):  # the broker keeps the message, because it is not acknowledged
                self._inbox.put(received, len(received.payload))
        else:
            self._inbox.offer(received, len(received.payload))

    @property
    def rescan_seconds(self) -> float:
        """The interval of readings while no message arrives."""
        return 60.0

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` when a message arrives or the connection ends."""
        return self._wake.listen(wake)

    def health(self) -> ConnectionHealth:
        """Return the state of the connection for `ingestd status` and the metrics."""
        connection = self._connection
        is_open = connection is not None and connection.is_open
        lag = self._oldest
        if is_open:
            sentence = f"Connected to {self.options.address}. Subscriptions: {len(self._filters)}."
        else:
            reason = connection.reason if connection is not None else self._reason
            sentence = self._refused or reason or f"Not connected to {self.options.address}."
        return ConnectionHealth(
            sentence=sentence,
            connected_since=self._connected_at if is_open else None,
            lag_seconds=max(0.0, self.context.elapsed() - lag) if lag is not None else (0.0 if is_open else None),
            dropped=self._inbox.dropped,
        )

    def notices(self) -> Iterable[str]:
        """Return sentences about a lost session, and about subscriptions that the broker granted only in part."""
        return [one for one in (self._lost, *self._notes) if one]

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - the cursor is not needed
        """Return why messages of the broker ``name`` are not read yet. If ``name`` is a topic, return the topic's state."""
        waiting = len(self._inbox) + len(self._pending)
        health = self.health()
        if name != self.options.address:
            return explain_topic(self.options, name, self._topic_times, connection=health.sentence, waiting=waiting)
        if health.connected_since is not None and not waiting:
            return None
        return f"{health.sentence}{waiting_sentence(waiting)}"

    def verify(self) -> Iterable[Step]:
        """Check connection and subscriptions in a separate session, so that a running daemon is not disconnected."""
        name = "connection"
        connection: BrokerConnection | None = None
        try:
            connection = self._open(
                "", receive=lambda connection, message: connection.acknowledge(message.mid, message.qos)
            )
            accepts = f"The broker {self.options.address} accepts the client with MQTT {connection.version}."
            lost = "" if connection.version == "5" else f" {_LOST_WITH_3}"
            yield Step(name=name, outcome="passed", sentence=f"{accepts}{lost}")
            name = "topics"
            connection.subscribe(self._wanted, retained=False)
            notes = connection.wait_until_granted()
            sentence = " ".join(notes) or f"The broker accepts all subscriptions: {len(self._wanted)}."
            yield Step(name=name, outcome="passed", sentence=sentence)
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))
        finally:
            if connection is not None:
                connection.close()

    def reset(self) -> None:
        """Try refused credentials again. A broker sends each message once, so messages can't be read again."""
        self.resume()

    def resume(self) -> None:
        """Try refused credentials again at the next reading."""
        self._refused = ""

    def interrupt(self) -> None:
        """End a running reading: close the inbox and the connection."""
        self.close()

    def close(self) -> None:
        """Disconnect. The broker keeps the session and the messages that are not acknowledged."""
        self._inbox.close()
        with self._lock:
            connection = self._connection
        if connection is not None:
            connection.close()
