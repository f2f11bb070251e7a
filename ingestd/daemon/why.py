"""Finding the partition that somebody asks about, and asking the daemon and the mirror about it."""

from __future__ import annotations

import os
from pathlib import Path

from ingestd.core.errors import SourceError
from ingestd.daemon.assembly import open_connector
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NobodyListens, call
from ingestd.daemon.control.refusal import DaemonEnded
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.daemon.explanation import explained
from ingestd.daemon.reporting import sentence_on
from ingestd.daemon.status import observed
from ingestd.mirror.history import History
from ingestd.mirror.sqlite import state_exists
from ingestd.sdk import Connector, Locates
from ingestd.settings import PipelineSettings


async def why(configuration: Configuration, asked: str, *, cwd: Path) -> list[str]:
    """A sentence for each pipeline that knows the file, or the partition, ``asked``; none where nobody does.

    Raises:
        MirrorError: the state file can't be read.
        Refused: the daemon that runs can't be asked.
    """
    sentences = []
    for pipeline in configuration.settings.pipelines:
        # Without its secrets (a password in systemd's keeping) a source can't be opened here; the daemon has its own.
        connector = open_connector(configuration, pipeline) if pipeline.source.complete else None
        try:
            for name in _names(connector, asked, cwd):
                if sentence := await _sentence(configuration, pipeline, connector, name):
                    sentences.append(sentence)
                    break
        finally:
            if connector is not None:
                connector.close()
    return sentences


def readable(name: str) -> str:
    """A file's name as the mirror keeps it and as it can be printed: bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _names(connector: Connector | None, asked: str, cwd: Path) -> list[str]:
    located = None
    if connector is not None and isinstance(connector, Locates):
        located = connector.locate(cwd / asked)
    return list(dict.fromkeys(readable(name) for name in (located, asked) if name is not None))


async def _sentence(
    configuration: Configuration, pipeline: PipelineSettings, connector: Connector | None, name: str
) -> str:
    history = _history(configuration, pipeline.name, name)
    cursor = dict(history.cursor) if history is not None and history.cursor is not None else None
    request = Explain(pipeline=pipeline.name, partition=name, cursor=cursor)
    try:
        answer, runs = await call(configuration.settings.state, request), True
    except (NobodyListens, DaemonEnded):
        answer, runs = _by_ourselves(connector, request), False
    if not isinstance(answer, Explained):
        raise TypeError(f"the daemon answered a question with {answer!r}")
    return sentence_on(pipeline.name, name, answer, history, runs=runs)


def _by_ourselves(connector: Connector | None, request: Explain) -> Explained:
    if connector is None:
        return Explained(waiting="", whereabouts="")
    try:
        list(connector.partitions())  # what a daemon that started now would see first
    except SourceError as error:
        return Explained(waiting=str(error), whereabouts="")
    return explained({request.pipeline: connector}, request)


def _history(configuration: Configuration, pipeline: str, name: str) -> History | None:
    if not state_exists(configuration.settings.state):
        return None
    with observed(configuration) as mirror:
        return mirror.history(pipeline, name)
