"""The sequence file next to the state file: detects a state file that was replaced by an older copy.

An older copy of the state file does not know the entries that were sent after the copy was made. So the sequence file stores
the number of the newest segment that was ever claimed. If the newest segment of a state file has a smaller number, the service
has newer content than the state file. The sequence file also names the state file and its sinks, so that a new state file
knows the sinks of an earlier one. It also names the writer that the service knows (service contract M11). Each start of the
daemon gets a higher attempt number, also after a kill, a restore or the loss of the state file.

A claim costs one write call without fsync; the written number survives the end of the process. After a power failure, the
number may be some seconds old. A state file that was copied in these seconds is then not detected.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import uuid
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ingestd.core.errors import MirrorError, MirrorFull
from ingestd.core.phrases import counted
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile
from ingestd.mirror.sqlite.state_file.failures import planted_file
from ingestd.mirror.sqlite.state_file.file_owner import open_state_file
from ingestd.wire.writer import Writer

_DIGITS = 20
_EPOCH = 1
_ATTEMPTS_OF_A_RUN = 1_000_000
"""The minimum difference between the attempt number of a start and the last recorded attempt number."""
_BYTES_AT_MOST = 16 << 20


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file.

    ``handed_out``: the newest segment that was claimed. ``sinks``: the service's ids of the sinks that the state file ``state``
    wrote; ``earlier``: the ids of the sinks that an earlier state file wrote. ``writer``: the name of the writer in the
    service; ``epoch`` and ``attempt``: their values at the last start.
    """

    handed_out: int
    state: str
    sinks: frozenset[str]
    earlier: frozenset[str]
    writer: str
    epoch: int
    attempt: int


class SequenceFile:
    """The sequence file of one open state file. ``path``: path of the state file.

    ``notice``: a sentence if the state file was replaced or lost, or if its sequence file is missing; else empty. The sinks
    that may have unknown content are in the table ``doubt``. ``now``: seconds since the epoch. ``granted``: the writer's name
    and epoch that this process was granted; None: keep name and epoch of the last start, or create them.

    Raises:
        MirrorError: the file can't be read or written.
    """

    def __init__(self, state: StateFile, path: Path, *, now: float, granted: Writer | None = None) -> None:
        self.path = path.with_name(f".{path.name}.sequence")
        try:
            self._file = open_state_file(self.path)
        except OSError as error:
            raise planted_file(error, self.path) or _unusable(self.path, error) from error
        try:
            found = _read(self._file)
            self.claimed_before = found.handed_out if found else 0
            """The newest segment that an earlier process has claimed."""
            self.notice, self._content = self._compare(state, found, now, granted)
            self._write()
        except OSError as error:
            os.close(self._file)
            raise _unusable(self.path, error) from error
        except BaseException:
            os.close(self._file)
            raise
        self._unwritten: OSError | None = None
        self._guard = threading.Lock()

    def is_earlier(self, sink_id: str) -> bool:
        """Return True if an earlier state file wrote the sink; ``sink_id`` is the service's id of the sink."""
        return sink_id in self._content.earlier

    @property
    def writer(self) -> Writer:
        """The writer of this process. No earlier process has sent a request with the same attempt number."""
        return Writer(name=self._content.writer, epoch=self._content.epoch, attempt=self._content.attempt)

    def raise_attempt(self, attempt: int) -> None:
        """Record an attempt number; the next start uses a higher number.

        Raises:
            MirrorError: the file can't be written.
        """
        with self._guard:
            self._content = replace(self._content, attempt=attempt)
            try:
                self._write()
            except OSError as error:
                raise _unusable(self.path, error) from error

    def hand_out(self, segments: Iterable[int]) -> None:
        """Record the newest of the claimed ``segments``, before they are sent."""
        newest = max(segments, default=0)
        with self._guard:
            if newest <= self._content.handed_out:
                return
            self._content = replace(self._content, handed_out=newest)
            try:
                os.pwrite(self._file, _number(newest), 0)
            except OSError as error:
                # Delivery is more important than the detection of a copy; close() tries again.
                self._unwritten = error

    def add_sink(self, sink_id: str) -> None:
        """Record a sink that this state file writes."""
        with self._guard:
            if not sink_id or sink_id in self._content.sinks:
                return
            self._content = replace(self._content, sinks=self._content.sinks | {sink_id})
            try:
                self._write()
            except OSError as error:
                self._unwritten = error

    def close(self) -> None:
        """Retry a failed write, and close the file.

        Raises:
            MirrorError: the file still can't be written.
        """
        try:
            if self._unwritten is not None:
                self._write()
            os.fsync(self._file)
        except OSError as error:
            raise _unusable(self.path, error) from error
        finally:
            os.close(self._file)

    def _compare(
        self, state: StateFile, found: _Content | None, now: float, granted: Writer | None
    ) -> tuple[str, _Content]:
        with state.writing() as connection:
            row = connection.execute(SQL["identity"]).fetchone()
            newest = connection.execute(SQL["newest_segment"]).fetchone()[0]
            sinks = frozenset(sink for (sink,) in connection.execute(SQL["sink_ids"]))
            fresh = row is None and not newest and not sinks
            name = row[0] if row is not None else str(uuid.uuid4())
            if row is None:
                connection.execute(SQL["identity_add"], (name,))
            earlier = found.earlier if found else frozenset[str]()
            if found is not None and found.state != name:
                earlier |= found.sinks
            reason = _reason(found, name=name, newest=newest, had_name=row is not None, fresh=fresh)
            if reason:
                connection.execute(SQL["doubt_add"], {"since": now, "reason": reason})
        if fresh and earlier:
            reason = (
                f"An earlier state file than {state.path} wrote {counted(len(earlier), 'sink')} from here. Their entries are"
                " read into the new state file. 'ingestd drift' lists entries that no source explains."
            )
        return reason, _Content(
            handed_out=newest,
            state=name,
            sinks=sinks,
            earlier=earlier,
            writer=granted.name if granted else found.writer if found else name,
            epoch=granted.epoch if granted else found.epoch if found else _EPOCH,
            attempt=max(int(now * 1000), found.attempt + _ATTEMPTS_OF_A_RUN if found else 0),
        )

    def _write(self) -> None:
        content = self._content
        text = {
            "state": content.state,
            "sinks": sorted(content.sinks),
            "earlier": sorted(content.earlier),
            "writer": content.writer,
            "epoch": content.epoch,
            "attempt": content.attempt,
        }
        data = _number(content.handed_out) + json.dumps(text).encode() + b"\n"
        os.pwrite(self._file, data, 0)
        os.ftruncate(self._file, len(data))
        os.fsync(self._file)


def _reason(found: _Content | None, *, name: str, newest: int, had_name: bool, fresh: bool) -> str:
    """Return why the service may have content that the state file does not know; empty if there is no reason.

    ``had_name``: the file was opened before. A new file in which a plan was stored has entries, but no name.
    """
    if fresh:
        return ""
    if found is None:
        return "The state file was used before, but its sequence file is missing: it may be a copy." if had_name else ""
    if found.state != name:
        return "The state file was replaced by another file."
    if found.handed_out > newest:
        return "The state file is older than the last request to the service: it was replaced by an older copy."
    return ""


def _read(file: int) -> _Content | None:
    """Return the content of the sequence file; None if the file is new or incomplete."""
    data = os.pread(file, _BYTES_AT_MOST, 0)
    try:
        text = json.loads(data[_DIGITS + 1 :])
        return _Content(
            handed_out=int(data[:_DIGITS]),
            state=str(text["state"]),
            sinks=frozenset(map(str, text["sinks"])),
            earlier=frozenset(map(str, text["earlier"])),
            writer=str(text["writer"]),
            epoch=int(text["epoch"]),
            attempt=int(text["attempt"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _number(value: int) -> bytes:
    return f"{value:0{_DIGITS}d}\n".encode()


def _unusable(path: Path, error: OSError) -> MirrorError:
    if error.errno == errno.ENOSPC:
        return MirrorFull(f"the disk that holds {path} is full. Free some space. Nothing was lost.")
    return MirrorError(
        f"the sequence file {path} can't be read and written: {error.strerror or error}. Check its owner and mode; it may be "
        "removed, then every sink is compared once."
    )
