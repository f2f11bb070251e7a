"""Why a partition waits, or what became of it, in a sentence. Pure."""

from __future__ import annotations

from ingestd.core.clock import moment
from ingestd.daemon.control.requests import Explained
from ingestd.mirror.history import History


def sentence_on(pipeline: str, name: str, said: Explained, history: History | None, *, runs: bool) -> str:
    """Empty where there is nothing to tell: neither the source nor the mirror knows it.

    ``runs``: whether a daemon does; without one nothing that waits will be read.
    """
    read = history is not None and history.reading is not None
    if said.waiting and (runs or history is None or not history.failure):
        before = f" What it held before was read {moment(history.read_at)}." if history is not None and read else ""
        return f"{said.waiting}{before}" + ("" if runs else " No daemon runs, so nothing is read.")
    if history is None:
        return ""
    if history.failure:
        return f"{name} could not be read {moment(history.failed_at)} (pipeline {pipeline}): {history.failure}"
    if not read:
        return f"{name} was seen by pipeline {pipeline}, and nothing was read from it yet."
    return f"{name} {_read(pipeline, history)}; {_delivered(history)}{_place(said)}."


def _read(pipeline: str, history: History) -> str:
    run = history.reading
    if run is None:
        return ""
    owner = history.facts.get("file.owner", "")
    changes = f"{run.created} created, {run.updated} updated, {run.removed} removed, {run.unchanged} unchanged"
    told = f"was read {moment(history.read_at)} by pipeline {pipeline}: {_counted(run.records, 'record')}"
    told += f" of {owner}'s" if owner else ""
    told += f", entries: {changes}"
    if history.same_as:
        same = "it had before" if history.same_as == history.name else f"that {history.same_as} had before"
        told += f"; its content is the one {same}"
    return told + (f"; it was found unchanged {moment(history.again_at)}" if history.again_at else "")


def _delivered(history: History) -> str:
    rest = []
    if history.pending:
        rest.append(f"{history.pending} of its entries wait for delivery")
    if history.rejected:
        rest.append(f"{history.rejected} rejected ('ingestd rejected list --file {history.name}')")
    return " and ".join(rest) if rest else "all of it is delivered"


def _place(said: Explained) -> str:
    return f"; {said.whereabouts}" if said.whereabouts else ""


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
