"""The operations of leases of writers (contract M14)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ingestd.wire.writer import NAME
from workspaced.core.problems import Invalid, NotFoundProblem, UnauthenticatedProblem
from workspaced.core.timestamps import stamp
from workspaced.http.description import RequestBody, Success
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, json_response
from workspaced.resources.operation_rows import get, post, put
from workspaced.resources.writer_leases import store
from workspaced.resources.writer_leases.records import WriterLeaseRecord
from workspaced.resources.writer_leases.rules import Holder, LeaseRelease, LeaseRequest
from workspaced.resources.writer_leases.store import StoredLease
from workspaced.security.permissions import DATA_SINKS_PUSH, Principal
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction

_ONE: Final = "/v1/writer-leases/{writer}"
_NAME: Final = re.compile(NAME)


async def get_lease(call: Call) -> Response:
    """Get the lease of a writer.

    Which process may send requests of this writer, and until when.
    200: The lease.
    """
    writer, caller = _addressed(call)

    def read(reader: ReadTransaction) -> Response:
        found = store.find(reader, writer, caller.name)
        if found is None:
            raise NotFoundProblem("lease_not_found", "This writer has no lease.")
        return _response(reader, call, found)

    return await call.store.read(read)


def take_lease(tx: Transaction, call: Call, given: LeaseRequest) -> Response:
    """Take or renew the lease of a writer.

    Taking the lease raises the writer's epoch in all workspaces of the caller. Older requests of the writer are then refused
    with `writer_fenced`, also in sinks that the new holder has not written.
    200: The lease.
    409: `lease_held`: another process holds it. `lease_lost`: it can't be renewed, because another process has taken it.
    """
    writer, caller = _addressed(call)
    if given.epoch is None:
        lease = store.take(tx, writer, caller, holder=given.holder, seconds=given.seconds, at=call.now)
        call.note(tx, "writer_lease.taken", writer, label=given.holder)
    else:
        lease = store.renew(tx, writer, caller.name, holder=given.holder, epoch=given.epoch, seconds=given.seconds)
    return _response(tx, call, lease)


def release_lease(tx: Transaction, call: Call, given: LeaseRelease) -> Response:
    """Release the lease of a writer.

    Another process may then take the lease at once.
    200: The lease.
    409: `lease_lost`: another process has taken it.
    """
    writer, caller = _addressed(call)
    reserved_ms = given.reserved_seconds * 1_000
    lease = store.release(tx, writer, caller.name, holder=given.holder, epoch=given.epoch, reserved_ms=reserved_ms)
    call.note(tx, "writer_lease.released", writer, label=given.holder)
    return _response(tx, call, lease)


def ask_for_lease(tx: Transaction, call: Call, given: Holder) -> Response:
    """Ask the holder to release the lease of a writer.

    The holder sees the request when it renews the lease.
    200: The lease.
    404: `lease_not_found`: this writer has no lease.
    """
    writer, caller = _addressed(call)
    return _response(tx, call, store.ask(tx, writer, caller.name, holder=given.holder))


def _addressed(call: Call) -> tuple[str, Principal]:
    if call.principal is None:
        raise UnauthenticatedProblem
    if not _NAME.fullmatch(call.names["writer"]):
        raise Invalid("bad_writer", "The name of a writer has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return call.names["writer"], call.principal


def _response(reader: ReadTransaction, call: Call, lease: StoredLease) -> Response:
    return json_response(
        WriterLeaseRecord(
            writer=lease.writer,
            holder=lease.holder,
            epoch=lease.epoch,
            milliseconds_left=store.milliseconds_left(reader, lease),
            successor=lease.successor or None,
            now=stamp(call.now),
        )
    )


def operations(limits: Limits) -> tuple[Operation, ...]:
    """Return the operations on leases of writers."""
    size, found = limits.body_bytes, Success(WriterLeaseRecord)

    def described(make: Callable[..., Operation], name: str, path: str, act: object, body: RequestBody) -> Operation:
        row = make(f"writer_leases.{name}", path, DATA_SINKS_PUSH, act, body_bytes=size, anywhere=True)
        return row.described(body=body, success=found)

    holder = {"holder": "plant-1 8d0f"}
    return (
        get("writer_leases.get", _ONE, DATA_SINKS_PUSH, get_lease, anywhere=True).described(success=found),
        described(put, "take", _ONE, take_lease, RequestBody(LeaseRequest, {**holder, "seconds": 10})),
        described(post, "release", f"{_ONE}/release", release_lease, RequestBody(LeaseRelease, {**holder, "epoch": 2})),
        described(post, "ask", f"{_ONE}/successor", ask_for_lease, RequestBody(Holder, holder)),
    )
