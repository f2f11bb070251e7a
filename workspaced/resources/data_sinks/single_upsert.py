"""One entry written by the mass update's single form, alone or in one go with others of its sink."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

from workspaced.core.problems import NotFoundProblem
from workspaced.events.outbox import has_subscribers
from workspaced.http.operations import Call
from workspaced.http.responses import Headers, Response, etag, json_response
from workspaced.resources.data_sinks import entry_store, mass_store, store
from workspaced.resources.data_sinks.actions import note_entry
from workspaced.resources.data_sinks.events import emit_entry
from workspaced.resources.data_sinks.records import entry_record
from workspaced.resources.data_sinks.sink_routes import named
from workspaced.resources.data_sinks.values import Change, StoredEntry, StoredSink, written
from workspaced.storage.batchable import BatchableWork
from workspaced.storage.port import Transaction

STALE_WRITE = "X-Stale-Write"


@dataclass(frozen=True, slots=True)
class SingleUpsert(BatchableWork[Response]):
    """The work of the single form (contract DS11). ``change`` removes nothing."""

    call: Call
    change: Change
    may_create: bool

    @property
    def kind(self) -> Hashable:
        """One sink, by the name that the path has for it, written to by one principal."""
        return self.call.workspace_id, self.call.names["sink"], self.call.actor, self.may_create

    def __call__(self, tx: Transaction, /) -> Response:
        """Alone.

        Raises:
            NotFoundProblem: there is no such sink, or no such entry and none may be made.
            Conflict: the id is in use, or the quota is reached.
        """
        call = self.call
        sink = store.get_sink(tx, call.workspace_id, named(call))
        existing = entry_store.find_entry(tx, sink, self.change.key)
        if existing is None and not self.may_create:
            raise NotFoundProblem("entry_not_found", "There is no such entry, and create=false was asked for.")
        entry = entry_store.upsert_entry(
            tx, sink, self.change, existing, actor=call.actor, now=call.now, limits=call.settings.limits
        )
        emit_entry(tx, call, sink, before=existing, after=entry)
        return self.answer(tx, sink, existing, entry)

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[Response | None]:
        """The first of each key, where nothing can be wrong with it.

        Raises:
            NotFoundProblem: there is no such sink.
        """
        nothing = [None] * len(pieces)
        first: dict[str, int] = {}
        for place, piece in enumerate(pieces):
            if piece.change.id is None:  # an id may be in use
                first.setdefault(piece.change.key, place)
        if not self.may_create or len(first) < 2:
            return nothing
        sink = store.get_sink(tx, self.call.workspace_id, named(self.call))
        most = self.call.settings.limits.entries_per_sink
        if most and sink.entry_count + len(first) > most:
            return nothing
        changes = [pieces[place].change for place in first.values()]
        now = max(pieces[place].call.now for place in first.values())
        states = mass_store.upsert_each(tx, sink, changes, actor=self.call.actor, now=now)
        heard = has_subscribers(tx)
        answers: list[Response | None] = [*nothing]
        for (before, after), place in zip(states, first.values(), strict=True):
            if heard:
                emit_entry(tx, pieces[place].call, sink, before=before, after=after)
            answers[place] = pieces[place].answer(tx, sink, before, after)
        return answers

    def answer(self, tx: Transaction, sink: StoredSink, before: StoredEntry | None, after: StoredEntry) -> Response:
        """What the caller is told of his entry, before and after; the audit log is told too."""
        note_entry(tx, self.call, before=before, after=after)
        stale = before is not None and before.version == after.version
        headers: Headers = ((STALE_WRITE, "ignored"),) if stale else ()
        return json_response(
            entry_record(after, sink.id), headers=(*headers, etag(after.version)), written=written(before, after)
        )
