"""Finding the partition that somebody asks about, and asking the daemon and the mirror about it."""

from __future__ import annotations

from pathlib import Path

from ingestd.core.errors import SourceError
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NobodyListens, call
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.daemon.explaining import explained
from ingestd.daemon.status import observed
from ingestd.daemon.telling import sentence_on
from ingestd.daemon.wiring import open_connector
from ingestd.mirror.history import History
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
        connector = open_connector(configuration, pipeline)
        try:
            for name in _names(connector, asked, cwd):
                if sentence := await _sentence(configuration, pipeline, connector, name):
                    sentences.append(sentence)
                    break
        finally:
            connector.close()
    return sentences


def _names(connector: Connector, asked: str, cwd: Path) -> list[str]:
    located = connector.locate(cwd / asked) if isinstance(connector, Locates) else None
    return list(dict.fromkeys(name for name in (located, asked) if name is not None))


async def _sentence(configuration: Configuration, pipeline: PipelineSettings, connector: Connector, name: str) -> str:
    history = _history(configuration, pipeline.name, name)
    cursor = dict(history.cursor) if history is not None and history.cursor is not None else None
    request = Explain(pipeline=pipeline.name, partition=name, cursor=cursor)
    try:
        answer, runs = await call(configuration.settings.state, request), True
    except NobodyListens:
        answer, runs = _by_ourselves(connector, request), False
    if not isinstance(answer, Explained):
        raise TypeError(f"the daemon answered a question with {answer!r}")
    return sentence_on(pipeline.name, name, answer, history, runs=runs)


def _by_ourselves(connector: Connector, request: Explain) -> Explained:
    try:
        list(connector.partitions())  # what a daemon that started now would see first
    except SourceError as error:
        return Explained(waiting=str(error), whereabouts="")
    return explained({request.pipeline: connector}, request)


def _history(configuration: Configuration, pipeline: str, name: str) -> History | None:
    if not configuration.settings.state.exists():
        return None
    with observed(configuration) as mirror:
        return mirror.history(pipeline, name)
