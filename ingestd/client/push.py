"""Writes many entries to one sink: compares them with the sink, and sends requests of a size that the service accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ingestd.client.bodies import check_key, check_value
from ingestd.client.errors import ServiceError, error_of, value_of
from ingestd.client.operations import ServiceMethods
from ingestd.client.pushed_rows import PushedRows, RejectedRow, RowEntry
from ingestd.client.records import Entry, EntryChange, EntrySummary
from ingestd.client.request import Request, Unaddressable
from ingestd.client.response import ServiceResponse, without_item_paths
from ingestd.core.phrases import as_sentence, counted
from ingestd.core.plan import MAX_STEPS, Step, first_step, needs_retype, next_step
from ingestd.wire.bulk import BulkLimits

if TYPE_CHECKING:
    from ingestd.client.programs import Client

_FRAME_BYTES = 2
"""The brackets of a JSON array. The size of an item includes its comma."""


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a push: counts of entries by their change, and the rejected rows in their order."""

    created: int
    updated: int
    unchanged: int
    rejected: tuple[RejectedRow, ...]


def push_rows(client: Client, sink: tuple[str, str], read: PushedRows) -> PushResult:
    """Write the entries of ``read`` that differ from the stored entries. ``sink``: the ids of the workspace and of the sink.

    Raises:
        ServiceError: the service can't be used now, or not with this key. A note of the error says how many entries were sent.
    """
    response = client.send(ServiceMethods.get_sink.build(*sink))
    stored = {entry.key: entry for entry in value_of(response).entries}
    new = [one for one in read.entries if one.key not in stored]
    changed = [one for one in read.entries if one.key in stored and _differs(one, stored[one.key])]
    sender = _Sender(client, sink, stored=frozenset(stored))
    try:
        sender.send([*new, *changed], response.bulk)
    except ServiceError as error:
        error.add_note(
            f"{counted(sender.sent, 'entry')} of {len(new) + len(changed)} were sent before. A repeated push sends the rest."
        )
        raise
    refused = {one.row for one in sender.rejected}
    return PushResult(
        created=sum(one.row not in refused for one in new),
        updated=sum(one.row not in refused for one in changed),
        unchanged=len(read.entries) - len(new) - len(changed),
        rejected=tuple(sorted((*read.rejected, *sender.rejected), key=lambda one: one.row)),
    )


def _differs(row: RowEntry, stored: EntrySummary) -> bool:
    return row.value != stored.value or needs_retype(wanted=row.data_type, found=stored.data_type)


class _Sender:
    """Sends the entries of one push. ``sent``: the number of entries with a response, including ``rejected`` entries."""

    def __init__(self, client: Client, address: tuple[str, str], *, stored: frozenset[str]) -> None:
        self._client, self._address, self._stored = client, address, stored
        self.sent = 0
        self.rejected: list[RejectedRow] = []

    def send(self, rows: Sequence[RowEntry], limits: BulkLimits | None) -> None:
        """Send the entries in bulk if the service announces bulk updates (``limits``); else send each entry alone."""
        if limits is None:
            for row in rows:
                self._send_single(row)
        else:
            for part in _parts(rows, limits):
                self._send_bulk(part)

    def _send_bulk(self, rows: Sequence[RowEntry], *, partial: bool = True) -> None:
        """Send entries in one request. If the request is refused, send each half of the entries.

        ``partial``: before that, request a result for each item, in case the service offers results by item.
        """
        items = [_change(row) for row in rows]
        request = ServiceMethods.mass_update_minimal.build(*self._address, items)
        response: ServiceResponse[Any] = self._client.send(request)
        if partial and response.outcome.remedy == "reject":
            response = self._client.send(ServiceMethods.mass_update_partial.build(*self._address, items))
            for one in response.value.results if response.value is not None else ():
                if one.status >= 300:
                    self._reject(
                        rows[one.index], f"The service refuses the entry ({one.status}): {as_sentence(one.reason)}"
                    )
            partial = response.outcome.remedy != "reject"
        if response.ok:
            self.sent += len(rows)
        elif response.remedy_for(len(request.body or b"")) not in {"reject", "shrink"}:
            raise error_of(response)
        elif len(rows) > 1:
            self._send_bulk(rows[: len(rows) // 2], partial=partial)
            self._send_bulk(rows[len(rows) // 2 :], partial=partial)
        else:
            self._reject_by(response, rows[0])

    def _send_single(self, row: RowEntry) -> None:
        step: Step = first_step("update" if row.key in self._stored else "create", value_is_null=False)
        for _ in range(MAX_STEPS):
            request = _checked(self._request(step, row), row)
            try:
                response = self._client.send(request)
            except Unaddressable as error:
                return self._reject(row, str(error))
            remedy = response.remedy_for(len(request.body or b""))
            found = response.value.data_type if response.value is not None else None
            following = next_step(step, remedy, value_is_null=False, wanted=row.data_type, found=found)
            match following:
                case "done":
                    self.sent += 1
                    return None
                case "reject":
                    return self._reject_by(response, row)
                case "stop" | "check_sink":
                    raise error_of(response)
                case _:
                    step = following
        return self._reject(row, "Another program changes the entry between the requests. Push the row again.")

    def _request(self, step: Step, row: RowEntry) -> Request[Any]:
        if step == "create_entry":
            kind = row.data_type or "scalar"
            return ServiceMethods.create_entry.build(*self._address, key=row.key, value=row.value, data_type=kind)
        if step == "mass_update_entry":
            return ServiceMethods.mass_update_entry.build(*self._address, key=row.key, value=row.value)
        # The step patch_entry follows a mass update that left another data type.
        return ServiceMethods.update_entry.build(
            *self._address, row.key, value=row.value, data_type=row.data_type or msgspec.UNSET
        )

    def _reject_by(self, response: ServiceResponse[Any], row: RowEntry) -> None:
        problem = response.problem
        words = (problem.words if problem is not None else "") or response.outcome.sentence
        self._reject(row, f"The service refuses the entry ({response.status}). {words}")
        self.sent += 1

    def _reject(self, row: RowEntry, reason: str) -> None:
        self.rejected.append(RejectedRow(row=row.row, key=row.key, reason=without_item_paths(reason)))


def _checked(request: Request[Any], row: RowEntry) -> Request[Any]:
    """Return the request for one entry. Its response must have the key of ``row``, and no other value than ``row``."""

    def check(entry: Entry) -> None:
        check_key(entry.key, row.key)
        check_value(UNSET if entry.value is None else entry.value, row.value)

    return replace(request, check=check)


def _change(row: RowEntry) -> EntryChange:
    return EntryChange(key=row.key, value=row.value, data_type=row.data_type)


def _parts(rows: Sequence[RowEntry], limits: BulkLimits) -> Iterator[list[RowEntry]]:
    """Yield the entries in parts that are within the limits of a request. An entry above the limits is a separate part."""
    part: list[RowEntry] = []
    size = _FRAME_BYTES
    for row in rows:
        length = len(msgspec.json.encode(_change(row))) + 1
        if part and (len(part) == limits.max_items or size + length > limits.max_bytes):
            yield part
            part, size = [], _FRAME_BYTES
        part.append(row)
        size += length
    if part:
        yield part
