"""The record of a host about its lease and its shipments: a small file in the folder of the state file."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

import msgspec

from ingestd.mirror.sqlite import open_state_file, unopenable
from ingestd.standby.identity import LeaseKind

_BYTES_AT_MOST = 4096


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a host. ``holder``: the name of this host in leases. ``writer``, ``lease``: see `SharedIdentity`.

    ``epoch``: the epoch of the last lease of this host, to which its state file belongs. ``shipped``: the number of the host's
    last shipment in this epoch. ``restored_at``: the time (of the service) of the shipment from which the state file was
    restored, until all sinks are compared with the state file; None: the state file has every entry that was sent.
    """

    holder: str
    writer: str = ""
    lease: LeaseKind = "service"
    epoch: int = 0
    shipped: int = 0
    restored_at: float | None = None


def read_record(state: Path) -> HostRecord:
    """Return the record of the host with this state file. If the record is missing or damaged, return a new record.

    Raises:
        MirrorFull: the disk is full.
        MirrorError: the file can't be opened.
    """
    handle = _open(state)
    with os.fdopen(handle, "rb") as file:
        try:
            return msgspec.json.decode(file.read(_BYTES_AT_MOST), type=HostRecord)
        except msgspec.DecodeError:
            host = "".join(letter for letter in socket.gethostname() if letter.isprintable())[:90]
            return HostRecord(holder=f"{host or 'host'} {uuid.uuid4().hex[:8]}")


def write_record(state: Path, record: HostRecord) -> None:
    """Store the record durably.

    Raises:
        MirrorFull: the disk is full.
        MirrorError: the file can't be written.
    """
    handle = _open(state)
    data = msgspec.json.encode(record)
    try:
        os.pwrite(handle, data, 0)
        os.ftruncate(handle, len(data))
        os.fsync(handle)
    except OSError as error:
        raise unopenable(error, _path(state)) from error
    finally:
        os.close(handle)


def _open(state: Path) -> int:
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        return open_state_file(_path(state))
    except OSError as error:
        raise unopenable(error, _path(state)) from error


def _path(state: Path) -> Path:
    return state.with_name(f".{state.name}.standby")
