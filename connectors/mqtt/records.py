"""The records of messages: payloads as JSON values, as texts, or as small files in a format."""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from connectors.formats import Format
from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.ndjson.exact import JsonRecord, LineUnreadable, parse_record
from connectors.formats.text.lines import SHOWN, shown_text
from connectors.mqtt.connection import BrokerConnection, Received
from connectors.mqtt.options import MqttOptions, TopicFilter, topic_facts
from ingestd.sdk import Batch, Cursor, Reject, SourceBroken

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

_CELLS = 4_000_000
"""The maximum of records times field names in a batch. If no two messages share names, memory would grow quadratically."""
_ANY = msgspec.json.Decoder(msgspec.Raw)


def received_message(
    connection: BrokerConnection,
    message: MQTTMessage,
    *,
    options: MqttOptions,
    filters: Sequence[TopicFilter],
    arrived: float,
) -> Received:
    """Return a message of the library as a value. ``filters``: those of ``options``. A topic that is not UTF-8 is empty."""
    try:
        topic = message.topic
    except UnicodeDecodeError:
        topic = ""
    is_ignored = message.retain and options.retained == "ignore"
    size = len(message.payload)
    kept = message.payload if size <= options.max_payload_bytes else message.payload[:SHOWN]
    return Received(
        connection=connection,
        packet=message.mid,
        qos=message.qos,
        repeated=message.dup,
        topic=topic,
        facts=None if is_ignored else topic_facts(filters, topic),
        payload=bytes(kept),
        size=size,
        arrived=arrived,
    )


class RecordCollector(msgspec.Struct):
    """Collects the records of consecutive messages. ``number``: the number of the last record or rejection."""

    options: MqttOptions
    number: int
    _rows: list[JsonRecord] = msgspec.field(default_factory=list)
    _positions: list[int] = msgspec.field(default_factory=list)
    _rejects: list[Reject] = msgspec.field(default_factory=list)
    _names: set[str] = msgspec.field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """True if there is no record and no rejection."""
        return not self._positions and not self._rejects

    @property
    def is_full(self) -> bool:
        """True if the records should be yielded as a batch."""
        return len(self._names) * len(self._rows) > _CELLS

    def add(self, message: Received) -> None:
        """Add the records of a message, or a rejection. With ``payload: json``, an empty payload adds nothing."""
        if message.size > len(message.payload):
            self._reject(
                message, f"has {message.size} bytes, more than {self.options.max_payload_bytes} (max_payload_bytes)"
            )
            return
        payload = self.options.payload
        if isinstance(payload, Format):
            self._add_file(message, payload)
            return
        try:
            if payload == "text":
                self._add(message, {"value": _text(message.payload)})
            elif json := message.payload.removeprefix(codecs.BOM_UTF8):
                self._add(message, _json_record(json))
        except LineUnreadable as error:
            self._reject(message, str(error))

    def to_batch(self, cursor: Cursor, *, last: bool) -> Batch:
        """Return the batch that ends at ``cursor``."""
        return Batch(
            records=records_to_frame(self._rows, field_names(self._rows)),
            positions=pl.Series("position", self._positions, dtype=pl.Int64),
            cursor=cursor,
            rejects=tuple(self._rejects),
            last=last,
        )

    def _add(self, message: Received, record: Mapping[str, str | None]) -> None:
        self.number += 1
        self._rows.append({**record, **(message.facts or {})})
        self._names.update(record)
        self._positions.append(self.number)

    def _add_file(self, message: Received, payload: Format) -> None:
        rows: list[Mapping[str, str | None]] = []
        rejects: list[Reject] = []
        try:
            for chunk in payload.read(io.BytesIO(message.payload), message.topic):
                rows += chunk.records.iter_rows(named=True)
                rejects += chunk.rejects
        except SourceBroken as error:
            self._reject(message, f"can't be read: {error}")
            return
        for row in rows:
            self._add(message, {name: value for name, value in row.items() if value is not None})
        for reject in rejects:
            self.number += 1
            record = {**reject.record, **(message.facts or {})}
            self._rejects.append(Reject(position=self.number, reason=reject.reason, field=reject.field, record=record))

    def _reject(self, message: Received, fault: str) -> None:
        self.number += 1
        record = {"text": shown_text(message.payload), **(message.facts or {})}
        reason = f"The message of the topic {message.topic!r} {fault.rstrip('.')}."
        self._rejects.append(Reject(position=self.number, reason=reason, record=record))


def _json_record(payload: bytes) -> JsonRecord:
    """Return the record of a JSON object. The record of any other JSON value except an array has one field, ``value``."""
    text = payload.strip(b" \t\r\n")
    if text.startswith(b"{") or not text:
        return parse_record(payload)
    if text.startswith(b"["):
        raise LineUnreadable("is a JSON array; with payload: {type: json} each of its objects is a record")
    try:
        _ANY.decode(text)  # the text must be exactly one value, because it is put into an object below
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LineUnreadable(f"is not valid JSON ({error}); payload: text takes any text") from None
    return parse_record(b'{"value":' + text + b"}")


def _text(payload: bytes) -> str:
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        raise LineUnreadable("holds bytes that are not UTF-8") from None
