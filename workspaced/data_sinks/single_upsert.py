"""One entry written by the mass update's single form, alone or in one go with others of its sink."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

from workspaced.data_sinks import entry_store, mass_store, store
from workspaced.data_sinks.deeds import note_entry
from workspaced.data_sinks.happenings import tell_entry
from workspaced.data_sinks.records import entry_record
from workspaced.data_sinks.sink_routes import named
from workspaced.data_sinks.values import Change, StoredEntry, StoredSink, written
from workspaced.events.outbox import anybody_listens
from workspaced.problems import NotFound
from workspaced.storage.joint import Joint
from workspaced.storage.port import Transaction
from workspaced.web.answers import Answer, Headers, etag, json_answer
from workspaced.web.operations import Call

STALE_WRITE = "X-Stale-Write"


@dataclass(frozen=True, slots=True)
class SingleUpsert(Joint[Answer]):
    """The work of DS11's single form. ``change`` removes nothing."""

    call: Call
    change: Change
    may_create: bool

    @property
    def kind(self) -> Hashable:
        """One sink, by the name that the path has for it, written to by one principal."""
        return self.call.workspace_id, self.call.names["sink"], self.call.actor, self.may_create

    def __call__(self, tx: Transaction, /) -> Answer:
        """Alone.

        Raises:
            NotFound: there is no such sink, or no such entry and none may be made.
            Conflict: the id is in use, or the quota is reached.
        """
        call = self.call
        sink = store.get_sink(tx, call.workspace_id, named(call))
        existing = entry_store.find_entry(tx, sink, self.change[0])
        if existing is None and not self.may_create:
            raise NotFound("entry_not_found", "There is no such entry, and create=false was asked for.")
        entry = entry_store.upsert_entry(
            tx, sink, self.change, existing, actor=call.actor, now=call.now, limits=call.settings.limits
        )
        tell_entry(tx, call, sink, before=existing, after=entry)
        return self.answer(tx, sink, existing, entry)

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[Answer | None]:
        """The first of each key, where nothing can be wrong with it.

        Raises:
            NotFound: there is no such sink.
        """
        nothing = [None] * len(pieces)
        first: dict[str, int] = {}
        for place, piece in enumerate(pieces):
            if piece.change[3] is None:  # an id may be in use
                first.setdefault(piece.change[0], place)
        if not self.may_create or len(first) < 2:
            return nothing
        sink = store.get_sink(tx, self.call.workspace_id, named(self.call))
        most = self.call.settings.limits.entries_per_sink
        if most and sink.entry_count + len(first) > most:
            return nothing
        changes = [pieces[place].change for place in first.values()]
        now = max(pieces[place].call.now for place in first.values())
        states = mass_store.upsert_each(tx, sink, changes, actor=self.call.actor, now=now)
        heard = anybody_listens(tx)
        answers: list[Answer | None] = [*nothing]
        for (before, after), place in zip(states, first.values(), strict=True):
            if heard:
                tell_entry(tx, pieces[place].call, sink, before=before, after=after)
            answers[place] = pieces[place].answer(tx, sink, before, after)
        return answers

    def answer(self, tx: Transaction, sink: StoredSink, before: StoredEntry | None, after: StoredEntry) -> Answer:
        """What the caller is told of his entry, before and after; the audit log is told too."""
        note_entry(tx, self.call, before=before, after=after)
        stale = before is not None and before.version == after.version
        headers: Headers = ((STALE_WRITE, "ignored"),) if stale else ()
        return json_answer(
            entry_record(after, sink.id), headers=(*headers, etag(after.version)), written=written(before, after)
        )
