"""`ingestd why`: find the partition of a path, and ask the daemon and the mirror about this partition."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ingestd.commands.status import observe
from ingestd.core.clock import moment
from ingestd.core.errors import SourceError
from ingestd.core.phrases import counted
from ingestd.core.record import NOTICE
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import DaemonEnded
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.daemon.explanation import explain
from ingestd.daemon.parts import open_connector
from ingestd.daemon.reporting import describe_changes, held_line
from ingestd.mirror.port import HeldRun
from ingestd.mirror.reports import History
from ingestd.mirror.sqlite import state_exists
from ingestd.sdk import Connector, Locates
from ingestd.settings.model import PipelineSettings


class PartitionExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a file or partition of a pipeline waits, or what happened to it. ``partition``: the name that the pipeline uses.

    ``waiting``: why the partition waits; empty if it does not wait. ``location``: where the file is now, such as ``it was
    archived as done/a.csv``; empty if the partition has no file. `ingestd why --json` uses the names of the members.
    """

    pipeline: str
    partition: str
    sentence: str
    waiting: str = ""
    location: str = ""


async def why(configuration: Configuration, path: str, *, cwd: Path) -> list[PartitionExplanation]:
    """Return why the file or partition ``path`` waits, or what happened to it.

    The result has one element for each pipeline that has this file or partition.

    Raises:
        MirrorError: the state file can't be read.
        RequestRefused: the running daemon can't respond.
    """
    found = []
    for pipeline in configuration.settings.pipelines:
        # This process may lack the secrets of a source (such as a systemd credential); the daemon has them.
        connector = open_connector(configuration, pipeline) if pipeline.source.complete else None
        try:
            for name in _names(connector, path, cwd):
                explanation = await _explanation(configuration, pipeline, connector, name)
                if explanation.sentence:
                    found.append(explanation)
                    break
        finally:
            if connector is not None:
                connector.close()
    return found


def printable(name: str) -> str:
    """Return a file's name as the mirror stores it: bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _names(connector: Connector | None, path: str, cwd: Path) -> list[str]:
    located = None
    if connector is not None and isinstance(connector, Locates):
        located = connector.locate(cwd / path)
    return list(dict.fromkeys(printable(name) for name in (located, path) if name is not None))


async def _explanation(
    configuration: Configuration, pipeline: PipelineSettings, connector: Connector | None, name: str
) -> PartitionExplanation:
    """Return the explanation of one name. ``sentence`` is empty if neither the source nor the mirror knows the name."""
    history = _history(configuration, pipeline.name, name)
    if (held := _held_run(configuration, pipeline.name, name)) is not None:
        before = ""
        if history is not None and history.failure:
            before = f"{_failure(pipeline.name, history)} Before that, "
        return PartitionExplanation(
            pipeline=pipeline.name, partition=name, sentence=f"{before}{held_line(held)}", waiting=held_line(held)
        )
    cursor = dict(history.cursor) if history is not None and history.cursor is not None else None
    request = Explain(pipeline=pipeline.name, partition=name, cursor=cursor)
    try:
        response, is_running = await call(configuration.settings.state, request), True
    except (NoDaemon, DaemonEnded):
        response, is_running = _explain_without_daemon(connector, request), False
    if not isinstance(response, Explained):
        raise TypeError(f"the response to {request!r} is {response!r}")
    return PartitionExplanation(
        pipeline=pipeline.name,
        partition=name,
        sentence=_partition_sentence(pipeline.name, name, response, history, is_running=is_running),
        waiting=response.waiting,
        location=response.location,
    )


def _explain_without_daemon(connector: Connector | None, request: Explain) -> Explained:
    if connector is None:
        return Explained(waiting="", location="")
    try:
        list(connector.partitions())  # a connector can explain only files of its last listing
    except SourceError as error:
        return Explained(waiting=str(error), location="")
    return explain({request.pipeline: connector}, request)


def _held_run(configuration: Configuration, pipeline: str, name: str) -> HeldRun | None:
    if not state_exists(configuration.settings.state):
        return None
    with observe(configuration) as mirror:
        return next((one for one in mirror.held_runs() if (one.pipeline, one.partition) == (pipeline, name)), None)


def _history(configuration: Configuration, pipeline: str, name: str) -> History | None:
    if not state_exists(configuration.settings.state):
        return None
    with observe(configuration) as mirror:
        return mirror.history(pipeline, name)


def _partition_sentence(
    pipeline: str, name: str, explained: Explained, history: History | None, *, is_running: bool
) -> str:
    """Return why a partition waits, or what happened to it. Return an empty text for an unknown partition.

    ``is_running``: whether a daemon runs. Without a daemon, waiting partitions are not read.
    """
    read = history is not None and history.reading is not None
    if explained.waiting and (is_running or history is None or not history.failure):
        before = f" Its earlier content was read {moment(history.read_at)}." if history is not None and read else ""
        return f"{explained.waiting}{before}" + ("" if is_running else " No daemon runs, so nothing is read.")
    if history is None:
        return ""
    if history.failure:
        return _failure(pipeline, history)
    if not read:
        return f"{name} was found by pipeline {pipeline} but has not been read yet."
    location = f"; {explained.location}" if explained.location else ""
    return f"{name} {_read(pipeline, history)}; {_delivered(history)}{location}."


def _failure(pipeline: str, history: History) -> str:
    return f"{history.name} could not be read {moment(history.failed_at)} (pipeline {pipeline}): {history.failure}"


def _read(pipeline: str, history: History) -> str:
    run = history.reading
    if run is None:
        return ""
    owner = history.facts.get("file.owner", "")
    text = f"was read {moment(history.read_at)} by pipeline {pipeline}: {counted(run.records, 'record')}"
    text += f", file owner {owner}" if owner else ""
    text += f", entries: {describe_changes(run)}"
    if history.same_as:
        other = (
            "its own earlier content" if history.same_as == history.name else f"the earlier one of {history.same_as}"
        )
        text += f"; its content equals {other}"
    if notice := history.facts.get(NOTICE):
        text += f"; notice: {notice.removesuffix('.')}"
    return text + (f"; it was found unchanged {moment(history.again_at)}" if history.again_at else "")


def _delivered(history: History) -> str:
    rest = []
    if history.pending:
        rest.append(f"{history.pending} of its entries are pending")
    if history.rejected:
        rest.append(f"{history.rejected} rejected ('ingestd rejected list --file {history.name}')")
    if not rest and history.reading is not None and history.reading.gave_no_value:
        return "it has no value to deliver"
    return " and ".join(rest) if rest else "all of it is delivered"
