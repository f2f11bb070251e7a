"""The opcua connector: complete readings of the present values, and readings of only the changed variables."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from connectors.opcua.options import PAUSE_SECONDS, OpcuaOptions
from connectors.opcua.values import time_text, value_text
from ingestd.sdk import (
    Batch,
    ConnectionHealth,
    Connector,
    Cursor,
    Partition,
    RecordUnreadable,
    Reject,
    SourceBroken,
    SourceContext,
    SourceError,
    SourceUnavailable,
    Step,
    counted,
    first_names,
    moment,
    pack,
)
from ingestd.sdk.streams import InboxClosed, LoopThread, WakeCall

if TYPE_CHECKING:
    from asyncua.ua import DataValue

    from connectors.opcua.security import ApplicationCertificate
    from connectors.opcua.session import ServerSession, Variable

T = TypeVar("T")

_WORK_SECONDS = 300.0
"""The maximum time for all requests of a step, such as browsing. A single request may take ``timeout_seconds``."""
_CONNECT_REQUESTS = 8
_SHOWN = 5
_REFUSED = {"BadUserAccessDenied", "BadIdentityTokenRejected", "BadIdentityTokenInvalid"}


class ServerAccessRefused(SourceBroken):
    """The server refused the user. Another attempt may lock the account."""


class OpcuaConnector(Connector):
    """Variables of one server. Each variable is a record. The name of the only partition is the server's address."""

    Options: ClassVar[type[OpcuaOptions]] = OpcuaOptions
    options: OpcuaOptions
    memory_grows: ClassVar[str] = "A reading has all variables in one batch; max_nodes is the limit."

    def __init__(self, options: OpcuaOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._wake = WakeCall()
        self._loop: LoopThread | None = None
        self._session: ServerSession | None = None
        self._own: ApplicationCertificate | None = None
        self._variables: Mapping[str, Variable] = {}
        self._bad: Mapping[str, str] = {}
        """The variables that the last complete reading rejected, with the reasons."""
        self._read_times: dict[str, float] = {}
        """For each variable, the time at which its value was read, in seconds since the epoch."""
        self._durable: Cursor | None = None
        """The cursor of the last reading of this process. If the stored cursor differs, everything is read again."""
        self._read_at = 0.0
        self._forgotten = False
        self._connected_at: float | None = None
        self._refused = ""
        self._reason = ""
        self._checks = False

    @classmethod
    def schedule_refusal(cls, options: OpcuaOptions) -> str:
        """Return the sentence that a subscription stays open and needs no schedule; empty with ``mode: poll``."""
        if options.mode == "poll":
            return ""
        return "mode: subscribe stays connected and reads what changes; remove schedule, or set mode: poll"

    def partitions(self) -> Iterable[Partition]:
        """Return the only partition. This sends no request."""
        return [Partition(name=self.options.address, deletes=self.options.deletes)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        """Yield all variables, or with ``mode: subscribe`` only the variables that changed since the last reading."""
        session = self._connect()
        changed = session.take_changed()
        is_due = self.context.elapsed() - self._read_at >= self.options.full_seconds
        follows = self._durable is not None and cursor == self._durable and not self._forgotten
        if not self._subscribes or not follows or is_due or session.needs_all or changed & self._bad.keys():
            yield from self._whole(session, cursor)
        elif changed:
            self._durable = None  # if this reading fails, the changed names are lost: the next reading must be complete
            some = [self._variables[name] for name in sorted(changed) if name in self._variables]
            records, rejects = self._records(some, self._run(session.read(some)))
            if rejects:  # only a complete reading can start or end a rejection
                yield from self._whole(session, cursor)
                return
            self._read_times.update(dict.fromkeys((one.name for one in some), self.context.now()))
            self._durable = {"content": "", "reading": uuid.uuid4().hex}
            yield self._batch(records, (), self._durable, partial=True)

    @property
    def _subscribes(self) -> bool:
        """True if this process waits for changes (the daemon). `ingestd sync` and `ingestd check` read once."""
        return self.options.mode == "subscribe" and self.context.until is None and self.context.unsaved is None

    def _whole(self, session: ServerSession, cursor: Cursor | None) -> Iterator[Batch]:
        self._durable = None
        variables = self._run(session.variables())
        self._variables = {one.name: one for one in variables if one.id is not None}
        if self._subscribes:
            self._run(session.subscribe(list(self._variables.values())))  # before the reading: no change is missed
        session.needs_all = False
        session.take_changed()
        records, rejects = self._read_all(session, variables)
        self._bad = {str(one.position): one.reason for one in rejects}
        self._read_times = dict.fromkeys(self._variables, self.context.now())
        self._read_at = self.context.elapsed()
        content = _digest(records, rejects)
        if cursor is not None and cursor.get("content") == content and not self._forgotten:
            self._durable = cursor
            return
        self._forgotten = False
        self._durable = {"content": content, "reading": uuid.uuid4().hex}
        yield self._batch(records, rejects, self._durable, partial=False)

    def _read_all(
        self, session: ServerSession, variables: Sequence[Variable]
    ) -> tuple[list[Mapping[str, str | None]], list[Reject]]:
        known = [one for one in variables if one.id is not None]
        values = dict(zip((one.name for one in known), self._run(session.read(known)), strict=True))
        return self._records(variables, [values.get(one.name) for one in variables])

    def _batch(
        self, records: Sequence[Mapping[str, str | None]], rejects: Sequence[Reject], cursor: Cursor, *, partial: bool
    ) -> Batch:
        whole = pack(
            records,
            positions=[str(one["node"]) for one in records],
            cursor=cursor,
            facts={"opcua.server": self.options.address},
            rejects=tuple(rejects),
            last=True,
        )
        return dataclasses.replace(whole, partial=partial)

    def _records(
        self, variables: Sequence[Variable], values: Sequence[DataValue | None]
    ) -> tuple[list[Mapping[str, str | None]], list[Reject]]:
        records: list[Mapping[str, str | None]] = []
        rejects: list[Reject] = []
        for variable, value in zip(variables, values, strict=True):
            record = {"node": variable.name, "path": variable.path or None, "name": variable.label or None}
            try:
                records.append({**record, "unit": variable.unit or None, **self._fields(value)})
            except RecordUnreadable as error:
                reason = f"The variable {variable.path or variable.name} {error}."
                rejects.append(Reject(position=variable.name, reason=reason, field="value", record=record))
        return records, rejects

    def _fields(self, value: DataValue | None) -> dict[str, str | None]:
        """Return the fields of a value.

        Raises:
            RecordUnreadable: the server does not have the variable, or the value is bad or can't be written as text.
        """
        if value is None:
            raise RecordUnreadable("is in a namespace that the server does not have")
        status = value.StatusCode
        quality = status.name if status is not None else "Good"
        fields = {"status": quality}
        if self.options.timestamps:
            fields["timestamp"] = time_text(value.SourceTimestamp) or ""
        if quality in {"BadNodeIdUnknown", "BadNodeIdInvalid"}:
            raise RecordUnreadable("is unknown to the server")
        if status is not None and status.is_bad():
            if self.options.bad_quality == "reject":
                raise RecordUnreadable(f"has a bad value ({quality}); its last good value stays")
            return {**fields, "type": None, "value": None}
        kind = value.Value.VariantType.name if value.Value is not None and value.Value.VariantType is not None else None
        return {**fields, "type": kind, "value": value_text(value.Value)}

    # ------------------------------------------------------------------------------------------------------- connection

    def _connect(self) -> ServerSession:
        """Return the open session. Open a session if there is none.

        Raises:
            SourceUnavailable: the server is not reachable now.
            SourceBroken: the server can't be used as configured.
        """
        if self._refused:
            raise ServerAccessRefused(self._refused)
        if self._session is not None:
            if self._session.is_open:
                return self._session
            self._reason = f"{self._session.reason} ({self.options.address})"
            self._close_session()
        session = self._open(changed=self._wake, ended=self._wake)
        self._session, self._connected_at, self._reason = session, self.context.now(), ""
        return session

    def _open(
        self, *, changed: Callable[[], None] = lambda: None, ended: Callable[[], None] = lambda: None
    ) -> ServerSession:
        try:
            from connectors.opcua.session import ServerSession  # noqa: PLC0415 - the extra may be missing
        except ImportError as error:
            raise SourceBroken(f"OPC UA needs asyncua: install ingestd[opcua] ({error}).") from error
        # The library would also log, with tracebacks, the errors that are reported here as sentences.
        logging.getLogger("asyncua").setLevel(logging.CRITICAL)
        session = ServerSession(self.options, self._certificate, now=self.context.now, changed=changed, ended=ended)
        try:
            self._run(session.open(), seconds=_CONNECT_REQUESTS * self.options.timeout_seconds)
        except SourceError as error:
            self._reason = str(error)
            if isinstance(error, ServerAccessRefused):
                self._refused = (
                    f"{error} A running daemon makes no connection until `ingestd reload`, because attempts may lock the"
                    " account."
                )
                raise ServerAccessRefused(self._refused) from None
            raise
        return session

    def _certificate(self) -> ApplicationCertificate:
        from connectors.opcua.security import application_certificate  # noqa: PLC0415 - the extra may be missing

        self._own = application_certificate(self.options, self.context, checks=self._checks)
        return self._own

    def _run(self, work: Coroutine[Any, Any, T], *, seconds: float = _WORK_SECONDS) -> T:
        """Run requests in the event loop of the library.

        Raises:
            SourceUnavailable: the server does not respond, or the source is being stopped.
            SourceBroken: the server does not permit this source with its configuration.
        """
        if self.context.stopping.is_set():
            work.close()
            raise SourceUnavailable("The reading was interrupted.")
        if self._loop is None:
            self._loop = LoopThread(f"opcua {self.options.address}")
        try:
            return self._loop.run(work, timeout_seconds=seconds)
        except (CancelledError, InboxClosed):
            raise SourceUnavailable("The reading was interrupted.") from None
        except SourceError:
            raise
        except TimeoutError:
            failure = f"did not respond within {self.options.timeout_seconds:g} seconds"
        except OSError as error:
            failure = f"is not reachable: {_plain(error)}"
        except Exception as error:  # noqa: BLE001 - `_failure_of` raises unknown errors again
            failure = self._failure_of(error)
        raise SourceUnavailable(f"The server {self.options.address} {failure}.", retry_after=PAUSE_SECONDS)

    def _failure_of(self, error: Exception) -> str:
        """Return words for an error of the library. Raise `ServerAccessRefused` for a refused user; raise unknown errors."""
        from asyncua import ua  # noqa: PLC0415 - the extra may be missing

        if not isinstance(error, ua.UaError):
            raise error
        status = ua.StatusCode(error.code).name if isinstance(error, ua.UaStatusCodeError) and error.code else ""
        if status in _REFUSED:
            raise ServerAccessRefused(
                f"The server {self.options.address} refused the user {self.options.user or 'anonymous'} ({status})."
            )
        return f"responded {status or _plain(error)}"

    def _close_session(self) -> None:
        session, self._session = self._session, None
        self._connected_at = None
        if session is not None and self._loop is not None:
            try:
                self._loop.run(session.close(), timeout_seconds=2.0)
            except (TimeoutError, CancelledError, InboxClosed):
                return  # the loop ends its tasks

    # -------------------------------------------------------------------------------------------------------- operation

    @property
    def rescan_seconds(self) -> float:
        """The interval of complete readings."""
        return self.options.sampling if self.options.mode == "poll" else self.options.full_seconds

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` when a variable changes or the connection ends."""
        return self._wake.listen(wake)

    def health(self) -> ConnectionHealth:
        """Return the state of the connection for `ingestd status` and the metrics."""
        session = self._session
        if session is None or not session.is_open:
            reason = session.reason if session is not None else self._reason
            return ConnectionHealth(sentence=self._refused or reason or f"Not connected to {self.options.address}.")
        bad = f", bad: {len(self._bad)}" if self._bad else ""
        return ConnectionHealth(
            sentence=f"Connected to {self.options.address}. Variables: {len(self._variables)}{bad}.",
            connected_since=self._connected_at,
            lag_seconds=0.0,
        )

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:  # noqa: ARG002 - the cursor is not needed
        """Return why the server ``name`` is not read. If ``name`` is a variable's path or node id, return its state."""
        health = self.health()
        if name == self.options.address:
            return health.sentence if health.connected_since is None else None
        known = next((one for one in self._variables.values() if name in {one.name, one.path}), None)
        node = known.name if known is not None else name
        if known is None and node not in self._bad:
            return f"{node} is configured. {health.sentence}" if node in self.options.nodes else None
        quality = self._bad.get(node) or f"The variable {name} is good."
        session, read_at = self._session, self._read_times.get(node)
        read = f" Its value was read {moment(read_at)}." if read_at is not None else ""
        changed = " A change is not read yet." if session is not None and session.has_changed(node) else ""
        how = "reported by a subscription" if self._subscribes else f"read every {self.options.sampling:g} seconds"
        return f"{quality}{read}{changed} Changes are {how}. {health.sentence}"

    def notices(self) -> Iterable[str]:
        """Return a sentence if the source's own certificate expires soon."""
        notice = self._own.expiry_notice(self.context.now()) if self._own is not None else ""
        return [notice] if notice else []

    def verify(self) -> Iterable[Step]:
        """Connect, find the variables, and read their values once."""
        name = "connection"
        session: ServerSession | None = None
        self._checks = True
        try:
            session = self._open()
            secured = "not encrypted" if self.options.security == "none" else "signed and encrypted"
            yield Step(
                name=name,
                outcome="passed",
                sentence=f"The server {self.options.address} accepts the source, {secured}.",
            )
            name = "variables"
            variables = self._run(session.variables())
            _, rejects = self._read_all(session, variables)
            listed = first_names((one.name for one in variables), _SHOWN)
            found = f"{counted(len(variables), 'variable')}: {listed}." if variables else "No variable was found."
            yield Step(name=name, outcome="passed" if variables else "failed", sentence=found)
            if rejects:
                yield Step(name="values", outcome="failed", sentence=" ".join(one.reason for one in rejects[:_SHOWN]))
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))
        finally:
            if session is not None:
                self._run(session.close())

    def reset(self) -> None:
        """Read everything at the next reading, and try a refused user again. An operator requested this."""
        self._forgotten = True
        self.resume()

    def resume(self) -> None:
        """Try to connect with a refused user again at the next reading."""
        self._refused = ""

    def interrupt(self) -> None:
        """End a running reading."""
        if self._loop is not None:
            self._loop.close()

    def close(self) -> None:
        """Disconnect, and end the thread of the library."""
        self._close_session()
        if self._loop is not None:
            self._loop.close()


def _digest(records: Sequence[Mapping[str, str | None]], rejects: Sequence[Reject]) -> str:
    faults = [(one.position, one.reason) for one in rejects]
    return hashlib.sha256(
        json.dumps([records, faults], ensure_ascii=False).encode("utf-8", "surrogatepass")
    ).hexdigest()


def _plain(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
