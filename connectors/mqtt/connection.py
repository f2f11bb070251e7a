"""One connection to a broker, and the messages that arrive on it."""

from __future__ import annotations

import hashlib
import secrets
import ssl
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from connectors.mqtt.options import LARGEST_PAYLOAD, MqttOptions, Version
from connectors.mqtt.port_probe import listener_sentence
from ingestd.sdk import SourceBroken, SourceUnavailable

if TYPE_CHECKING:
    from paho.mqtt.client import ConnectFlags, DisconnectFlags, MQTTMessage
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

IN_FLIGHT = 200
"""The maximum number of unacknowledged messages. After a lost connection, the broker repeats at most as many messages."""
RESPONSE_SECONDS = 15.0
"""The maximum time for a response of the broker."""
_KEEPALIVE_SECONDS = 30
_END_SECONDS = 1.0
_CREDENTIALS = {0x86, 0x87, 0x8A, 0x8C}
"""Reason codes: bad user name or password, not authorized, banned, bad authentication method."""
_VERSION_REFUSED = 0x84
_NEVER = {_VERSION_REFUSED: "Set version to a version that it supports.", 0x85: "Set another client_id."}
_TAKEN_OVER = 0x8E
_TAKEN_OVER_SECONDS = 60.0
_QOS_NOT_SUPPORTED = 0x9B
_OTHER_NAME = {62, 64}
"""Error codes of OpenSSL: the certificate is for a different host name or address."""
_OVERHEAD = 2**20
"""The maximum size of a packet's topic and properties, in bytes. The payload is counted separately."""


class BrokerAccessRefused(SourceBroken):
    """The broker refused the credentials. Another attempt may lock the account."""


class BrokerVersionRefused(SourceBroken):
    """The broker does not support the version of MQTT."""


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the broker sent.

    ``facts``: the facts of the topic; None if the message is only acknowledged, not read. ``payload``: the content; only its
    first bytes if ``size`` exceeds the limit. ``arrived``: the value of `SourceContext.elapsed` at the arrival. ``packet``:
    the packet identifier, which is in use until the acknowledgement; it has no meaning for ``qos`` 0. ``repeated``: the
    broker may have sent the message before.
    """

    connection: BrokerConnection
    packet: int
    qos: int
    repeated: bool
    topic: str
    facts: Mapping[str, str] | None
    payload: bytes
    size: int
    arrived: float

    @property
    def digest(self) -> str:
        """Return a hash of topic and payload. It distinguishes messages that have the same packet number."""
        found = hashlib.blake2b(self.topic.encode("utf-8", "surrogateescape"), digest_size=8)
        found.update(b"\0%d\0" % self.size)
        found.update(self.payload)
        return found.hexdigest()

    def acknowledge(self) -> None:
        """Acknowledge the message on its own connection. Do nothing if this connection has ended."""
        if self.qos:
            self.connection.acknowledge(self.packet, self.qos)


class _ClosingSocket(ssl.SSLSocket):
    """A socket that closes itself if the handshake fails, because the library does not close it."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


class BrokerConnection:
    """A connection by paho-mqtt. Each connection is a new object, so a message is acknowledged only on its own connection.

    A thread of the library calls ``receive`` for each message. It calls ``ended`` if the connection is cut, and also when the
    broker confirms subscriptions. ``client_id``: the name of the session. If it is empty, the broker makes a new session and
    does not keep it. ``version``: the version of MQTT.
    """

    def __init__(
        self,
        options: MqttOptions,
        *,
        client_id: str,
        version: Version,
        receive: Callable[[BrokerConnection, MQTTMessage], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._options = options
        self.version = version
        self._receive = receive
        self._on_ended = ended
        self._is_kept = bool(client_id)
        self._wanted: Mapping[str, int] = {}
        self._subscribed_by = 0.0
        """The time (`time.monotonic`) by which the broker must have confirmed the subscriptions."""
        self._packets: list[int] = []
        self.session_present = False
        """True if the broker had the session; valid after `open`."""
        self.session_expiry = options.session_expiry if client_id else 0
        self.reason = ""
        """The reason why the connection ended or failed."""
        self.retry_after = 0.0
        self.is_unanswered = False
        """True if the broker seems to have ended the connection instead of sending a response."""
        self._is_known = False
        """True if the cause of a failed connection is known, or if a broker has responded."""
        self._refusal: SourceBroken | None = None
        self._changed = threading.Condition()  # reentrant
        self.was_up = False
        """True if the broker accepted the connection, even if the connection has ended."""
        self._has_ended = False
        self._is_closing = False
        self._responses: dict[int, list[ReasonCode]] = {}
        self._client = self._make_client(client_id)

    def _make_client(self, client_id: str) -> Any:
        try:
            from paho.mqtt.client import Client, MQTTv5, MQTTv311  # noqa: PLC0415 - the extra may be missing
            from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415
        except ImportError as error:
            raise SourceBroken(f"MQTT needs paho-mqtt: install ingestd[mqtt] ({error}).") from error
        client: Any = Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id or (secrets.token_hex(8) if self.version == "3.1.1" else ""),
            protocol=MQTTv5 if self.version == "5" else MQTTv311,
            clean_session=None if self.version == "5" else not self._is_kept,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if self._options.user:
            client.username_pw_set(self._options.user, self._options.password.get_secret_value() or None)
        if self._options.is_secure:
            client.tls_set_context(self._tls_context())
        client.on_socket_open = self._on_socket_open
        client.on_connect_fail = self._on_connect_fail
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = lambda _client, _data, packet, codes, _properties: self._on_response(packet, codes)
        client.on_unsubscribe = lambda _client, _data, packet, codes, _properties: self._on_response(packet, codes)
        client.on_message = lambda _client, _data, message: self._receive(self, message)
        return client

    def _tls_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self._options.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SourceBroken(f"The certificates of {self._options.ca_file} can't be read: {error}.") from error
        context.sslsocket_class = _ClosingSocket
        return context

    def open(self) -> None:
        """Connect and wait for the broker's response.

        Raises:
            SourceUnavailable: the broker does not respond now, or `close` was called.
            BrokerAccessRefused: the broker refused the credentials.
            BrokerVersionRefused: the broker does not support this version.
            SourceBroken: the broker does not accept this client with this configuration.
        """
        more: dict[str, Any] = {}
        if self.version == "5":
            from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415 - the extra may be missing
            from paho.mqtt.properties import Properties  # noqa: PLC0415

            properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = self.session_expiry
            properties.ReceiveMaximum = IN_FLIGHT
            properties.MaximumPacketSize = LARGEST_PAYLOAD + _OVERHEAD
            more = {"clean_start": not self.session_expiry, "properties": properties}
        self._client.connect_async(self._options.host, self._options.port, keepalive=_KEEPALIVE_SECONDS, **more)
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self.was_up or self._has_ended or self._is_closing, RESPONSE_SECONDS)
            if self._refusal is not None:
                raise self._refusal
            is_closing = self._is_closing
            if self.was_up and not is_closing:
                return
        self.close()
        if is_closing:
            raise SourceUnavailable("The connection was interrupted.")
        late = f"The broker {self._options.address} did not respond within {RESPONSE_SECONDS:g} seconds."
        # If the server speaks another protocol, the error does not show this. So the port is probed.
        other = "" if self._is_known else listener_sentence(self._options)
        self.is_unanswered = self.is_unanswered and not other
        raise SourceUnavailable(other or self.reason or late, retry_after=self.retry_after)

    def subscribe(self, topics: Mapping[str, int], *, retained: bool, remove: Collection[str] = ()) -> None:
        """Request ``topics`` (the QoS of each filter), and cancel the filters ``remove``. `granted` returns the response.

        The call does not wait: a broker may confirm only after messages that it has sent are acknowledged. ``retained``: the
        broker sends retained messages for new subscriptions. With MQTT 3.1.1 it sends retained messages at each request.

        Raises:
            SourceUnavailable: the connection ended.
        """
        self._wanted = topics
        self._subscribed_by = time.monotonic() + RESPONSE_SECONDS
        requests = [self._client.unsubscribe(sorted(remove))] if remove else []
        if topics and self.version == "5":
            from paho.mqtt.subscribeoptions import SubscribeOptions  # noqa: PLC0415 - the extra may be missing

            handling = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB if retained else SubscribeOptions.RETAIN_DO_NOT_SEND
            options = [(name, SubscribeOptions(qos=qos, retainHandling=handling)) for name, qos in topics.items()]
            requests.append(self._client.subscribe(options))
        elif topics:
            requests.append(self._client.subscribe(list(topics.items())))
        if any(packet is None for _, packet in requests):
            raise SourceUnavailable(self.reason or f"The connection to {self._options.address} ended.")
        with self._changed:
            self._packets = [packet for _, packet in requests]

    def granted(self) -> list[str] | None:
        """Return a sentence for each filter with a lower QoS than requested; None until the broker has confirmed.

        Raises:
            SourceBroken: the broker refused a filter.
            SourceUnavailable: the broker did not respond in time, or the connection ended.
        """
        with self._changed:
            if any(packet not in self._responses for packet in self._packets):
                if not self._has_ended and time.monotonic() < self._subscribed_by:
                    return None
                late = f"did not confirm the subscriptions within {RESPONSE_SECONDS:g} seconds"
                raise SourceUnavailable(
                    self.reason or f"The broker {self._options.address} {late}.", retry_after=self.retry_after
                )
            codes = self._responses[self._packets[-1]] if self._wanted else []
        lower = []
        for (name, qos), code in zip(self._wanted.items(), codes, strict=True):
            if code.is_failure:
                raise SourceBroken(
                    f"The broker {self._options.address} refused the subscription to {name!r}: {code.getName()}. Correct the"
                    " filter, or have the broker's administrator permit it."
                )
            if code.value < qos:
                lower.append(f"The broker grants only QoS {code.value} for {name!r}, so a crash can lose its messages.")
        return lower

    def wait_until_granted(self) -> list[str]:
        """Wait for the broker's response, and return the result of `granted`. For connections that read no messages."""
        with self._changed:
            while True:
                found = self.granted()
                if found is not None:
                    return found
                self._changed.wait(max(0.0, self._subscribed_by - time.monotonic()))

    def acknowledge(self, packet: int, qos: int) -> None:
        """Acknowledge a message of this connection. Do nothing if the connection has ended."""
        if self.is_open:
            self._client.ack(packet, qos)

    @property
    def is_open(self) -> bool:
        """True if messages can arrive."""
        with self._changed:
            return self.was_up and not self._has_ended

    def close(self) -> None:
        """Send waiting packets, such as acknowledgements, and disconnect. Wait at most one second."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._client.disconnect()
        if self.was_up:
            with self._changed:
                self._changed.wait_for(lambda: self._has_ended, _END_SECONDS)

    # The thread of the library calls the following methods.

    def _on_socket_open(self, *_: object) -> None:
        if self._is_closing:
            raise ConnectionAbortedError("the source ends")

    def _on_connect_fail(self, *_: object) -> None:
        error = sys.exception()
        if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OTHER_NAME:
            why = f"its certificate is for another name ({error.verify_message}). Use a name of the certificate in url"
        elif isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted ({error.verify_message}). Set ca_file to the authority's certificate"
        else:
            why = str(error) or type(error).__name__
        is_other = isinstance(error, ssl.SSLError | ConnectionResetError)
        self._is_known = not is_other or isinstance(error, ssl.SSLCertVerificationError)
        self._end(f"The broker {self._options.address} is not reachable: {why.rstrip('.')}.")

    def _on_connect(
        self, _client: object, _data: object, flags: ConnectFlags, code: ReasonCode, properties: Properties | None
    ) -> None:
        self._is_known = True
        if code.is_failure:
            sentence = f"The broker {self._options.address} refused the connection: {code.getName()}."
            if code.value in _CREDENTIALS:
                self._refusal = BrokerAccessRefused(
                    f"{sentence} Correct user and password, or the permissions at the broker."
                )
            elif code.value in _NEVER:
                kind = BrokerVersionRefused if code.value == _VERSION_REFUSED else SourceBroken
                self._refusal = kind(f"{sentence} {_NEVER[code.value]}")
            self._end(sentence)
            return
        with self._changed:
            self.session_present = flags.session_present
            self.session_expiry = getattr(properties, "SessionExpiryInterval", self.session_expiry)
            self.was_up = True
            self._changed.notify_all()

    def _on_disconnect(
        self, _client: object, _data: object, flags: DisconnectFlags, code: ReasonCode, _properties: object
    ) -> None:
        if flags.is_disconnect_packet_from_server and code.value == _TAKEN_OVER:
            self.retry_after = _TAKEN_OVER_SECONDS
            self._end(
                f"Another client connected to {self._options.address} with the same client id, so the broker ended this"
                " connection. Give each client a different client_id."
            )
        elif flags.is_disconnect_packet_from_server and code.value == _QOS_NOT_SUPPORTED:
            self._end(f"The broker {self._options.address} does not support this QoS. Set qos: 0.")
        elif flags.is_disconnect_packet_from_server:
            self._end(f"The broker {self._options.address} ended the connection: {code.getName()}.")
        elif self.was_up:
            self._end(
                f"The connection to the broker {self._options.address} was cut. If this repeats, another client uses the same"
                " client id."
            )
        else:
            self.is_unanswered = not (self._is_known or self._is_closing)
            self._end(f"The broker {self._options.address} ended the connection before it accepted the client.")

    def _on_response(self, packet: int, codes: list[ReasonCode]) -> None:
        with self._changed:
            self._responses[packet] = codes
            self._changed.notify_all()
        self._on_ended()

    def _end(self, reason: str) -> None:
        with self._changed:
            # A failed attempt to connect does not wake the source, because the source waits before the next attempt.
            is_cut = self.was_up and not self._has_ended and not self._is_closing
            if not self._is_closing:
                self.reason = self.reason or reason
            self._has_ended = True
            self._changed.notify_all()
        if is_cut:
            self._on_ended()
