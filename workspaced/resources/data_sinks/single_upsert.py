"""The single form of a mass update: one entry, written alone or in a batch with other entries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

from workspaced.core.problems import NotFoundProblem
from workspaced.events.outbox import ask_subscribers
from workspaced.http.operations import Call
from workspaced.http.responses import Headers, Response, etag, json_response
from workspaced.resources.data_sinks import entry_store, mass_store, store
from workspaced.resources.data_sinks.events import record_entries, record_entry
from workspaced.resources.data_sinks.origins import ValueOrigin, origin_number, origin_text
from workspaced.resources.data_sinks.records import entry_record
from workspaced.resources.data_sinks.sink_routes import read_sink_name
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink, written
from workspaced.storage.batchable import BatchableWork
from workspaced.storage.port import Transaction

STALE_WRITE = "X-Stale-Write"


@dataclass(slots=True, eq=False)  # not frozen: creating a frozen instance takes three times as long
class SingleUpsert(BatchableWork[Response]):
    """The work of the single form (contract DS11). ``change`` is not a removal."""

    call: Call
    change: Change
    may_create: bool
    origin: ValueOrigin | None = None

    @property
    def kind(self) -> Hashable:
        """Writes share a batch only if workspace, sink name in the path, principal and ``may_create`` are equal."""
        return self.call.workspace_id, self.call.names["sink"], self.call.actor, self.may_create

    def __call__(self, tx: Transaction, /) -> Response:
        """Write the entry alone.

        Raises:
            NotFoundProblem: there is no such sink, or no such entry and ``may_create`` is false.
            ConflictProblem: the id is in use, or the quota is reached.
            UnprocessableProblem: the sink protects the entry.
        """
        call = self.call
        sink = store.get_sink(tx, call.workspace_id, read_sink_name(call))
        existing = entry_store.find_entry(tx, sink, self.change.key)
        if existing is None and not self.may_create:
            raise NotFoundProblem("entry_not_found", "There is no such entry, and create is false.")
        entry = entry_store.upsert_entry(tx, call, sink, self.change, existing, origin=self.origin)
        record_entry(tx, call, sink, before=existing, after=entry, origin=self.origin_text)
        return _response(sink, existing, entry)

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[Response | None]:
        """Write the first change of each key, if it can't fail. Return None for each other change: it must be written alone.

        Raises:
            NotFoundProblem: there is no such sink.
        """
        nothing = [None] * len(pieces)
        first: dict[str, int] = {}
        for index, piece in enumerate(pieces):
            if piece.change.id is None:  # a given id may be in use
                first.setdefault(piece.change.key, index)
        if not self.may_create or len(first) < 2:
            return nothing
        has_subscribers = ask_subscribers(tx)
        sink = store.get_sink(tx, self.call.workspace_id, read_sink_name(self.call))
        most = self.call.settings.limits.entries_per_sink
        if most and sink.entry_count + len(first) > most:
            return nothing
        given = [pieces[index] for index in first.values()]
        if sink.protect_fed_entries and any(piece.origin is None for piece in given):
            return nothing
        origins = list(dict.fromkeys(piece.origin for piece in given if piece.origin))
        positions = {origin: position for position, origin in enumerate(origins)}
        changes = [
            piece.change._replace(origin=origin_number(positions[piece.origin], piece.change.origin or 0))
            if piece.origin
            else piece.change
            for piece in given
        ]
        newest = max((pieces[index].call for index in first.values()), key=lambda call: call.now)
        states = mass_store.upsert_each(tx, newest, sink, changes, origins)
        responses: list[Response | None] = [*nothing]
        for (before, after), index in zip(states, first.values(), strict=True):
            responses[index] = _response(sink, before, after)
        recorded = [(piece.call, *state) for piece, state in zip(given, states, strict=True)]
        record_entries(tx, sink, recorded, [piece.origin_text for piece in given], has_subscribers)
        return responses

    @property
    def origin_text(self) -> str:
        """The phrase about the value's origin for the audit row; empty if there is no origin."""
        return origin_text(self.origin, self.change.origin)


def _response(sink: StoredSink, before: StoredEntry | None, after: StoredEntry) -> Response:
    is_stale = before is not None and before.version == after.version
    headers: Headers = ((STALE_WRITE, "ignored"),) if is_stale else ()
    return json_response(
        entry_record(after, sink.id), headers=(*headers, etag(after.version)), written=written(before, after)
    )
