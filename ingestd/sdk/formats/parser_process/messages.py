"""The limits of a parser process, and its messages: each has a JSON head; a chunk also has its columns as Arrow streams."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from ingestd.sdk import Reject, UnreadableColumn
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation

_SIZES = struct.Struct("!IQ")
_DESCRIPTOR_BYTE = b"f"


class ParserLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for each file, and for the processes.

    ``memory_bytes``: the default is enough for a workbook with 2 GiB of XML. ``silent_seconds``: the longest time between
    two messages of the process. ``idle_seconds``: the time for which a process without work is kept. ``processes``: the
    maximum number of processes for all connectors together.
    """

    memory_bytes: int = 3 * 2**30
    cpu_seconds: int = 300
    silent_seconds: float = 600.0
    idle_seconds: float = 60.0
    processes: int = 2


class ParseOrder(msgspec.Struct, frozen=True, kw_only=True, tag="order"):
    """From parent to child: parse a file. Its descriptor is sent with the order.

    ``module`` and ``format`` name the class of the format. ``paths``: the parent's import path. ``settings``: the values of the
    class's fields. ``file``: the file's name for errors.
    """

    module: str
    format: str
    paths: tuple[str, ...]
    settings: msgspec.Raw
    file: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag="accepted"):
    """The child begins to parse. If the child dies after this message, the file is the cause."""


class ChunkHeader(msgspec.Struct, frozen=True, kw_only=True, tag="chunk"):
    """A chunk. Two Arrow streams follow: the records, with ``records_bytes`` bytes, then the positions."""

    records_bytes: int
    rejects: tuple[Reject, ...]
    end: RecordLocation
    header: bool
    total: int | None
    facts: Mapping[str, str]
    unreadable: tuple[UnreadableColumn, ...]


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag="broken"):
    """The file can't be read; ``sentence`` states why. ``reusable``: see `ParsingEnded`."""

    sentence: str
    reusable: bool


class DiskFailed(msgspec.Struct, frozen=True, kw_only=True, tag="disk"):
    """The system could not read the file; ``number``: the error number."""

    number: int


class Crashed(msgspec.Struct, frozen=True, kw_only=True, tag="crashed"):
    """The parser raised an unexpected exception. ``no_memory``: the parser ran out of memory."""

    error: str
    no_memory: bool


class ParsingEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The whole file was sent. ``reusable``: the process holds little memory and can parse another file."""

    reusable: bool


FinalMessage = Broken | DiskFailed | Crashed | ParsingEnded
ChildMessage = Accepted | ChunkHeader | FinalMessage

_TO_CHILD = msgspec.json.Decoder(ParseOrder)
_FROM_CHILD: msgspec.json.Decoder[ChildMessage] = msgspec.json.Decoder(ChildMessage)


class ConnectionEnded(Exception):
    """The other side closed the connection or died."""


def send_order(channel: socket.socket, order: ParseOrder, descriptor: int) -> None:
    """Send an order with its file.

    Raises:
        OSError: the child has ended.
    """
    socket.send_fds(channel, [_DESCRIPTOR_BYTE], [descriptor])
    _send(channel, msgspec.json.encode(order), b"")


def receive_order(channel: socket.socket) -> tuple[ParseOrder, int]:
    """Return the next order and the descriptor of its file.

    Raises:
        ConnectionEnded: the parent has ended or closed the connection.
    """
    data, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    if not data:
        raise ConnectionEnded
    head, _ = _receive(channel)
    return _TO_CHILD.decode(head), descriptors[0]


def send(channel: socket.socket, message: ChildMessage) -> None:
    """Send a message without columns."""
    _send(channel, msgspec.json.encode(message), b"")


def send_chunk(channel: socket.socket, chunk: RecordChunk) -> None:
    """Send a chunk."""
    records, positions = _arrow(chunk.records), _arrow(chunk.positions.to_frame("position"))
    header = ChunkHeader(
        records_bytes=len(records),
        rejects=chunk.rejects,
        end=chunk.end,
        header=chunk.header,
        total=chunk.total,
        facts=chunk.facts,
        unreadable=chunk.unreadable,
    )
    # The facts of a format, and its rejected records, may be any mapping.
    _send(channel, msgspec.json.encode(header, enc_hook=dict), records + positions)


def receive(channel: socket.socket) -> Accepted | FinalMessage | RecordChunk:
    """Return the next message; a chunk as the `RecordChunk` that was sent.

    Raises:
        ConnectionEnded: the child has ended.
        TimeoutError: nothing arrived within the channel's timeout.
    """
    head, columns = _receive(channel)
    message = _FROM_CHILD.decode(head)
    if not isinstance(message, ChunkHeader):
        return message
    size = message.records_bytes
    return RecordChunk(
        records=_frame(columns[:size]),
        positions=_frame(columns[size:]).get_column("position"),
        rejects=message.rejects,
        end=message.end,
        header=message.header,
        total=message.total,
        facts=message.facts,
        unreadable=message.unreadable,
    )


def _arrow(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ipc_stream(out)
    return out.getvalue()


def _frame(data: memoryview) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(data))


def _send(channel: socket.socket, head: bytes, columns: bytes) -> None:
    channel.sendall(_SIZES.pack(len(head), len(columns)) + head)
    if columns:  # a message without columns is complete now, and its receiver may have ended already
        channel.sendall(columns)


def _receive(channel: socket.socket) -> Sequence[memoryview]:
    head_bytes, columns_bytes = _SIZES.unpack(_receive_exactly(channel, _SIZES.size))
    return _receive_exactly(channel, head_bytes), _receive_exactly(channel, columns_bytes)


def _receive_exactly(channel: socket.socket, size: int) -> memoryview:
    data = memoryview(bytearray(size))
    filled = 0
    while filled < size:
        count = channel.recv_into(data[filled:])
        if not count:
            raise ConnectionEnded
        filled += count
    return data
