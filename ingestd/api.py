"""One-off runs of pipelines in scripts and notebooks: `ingestd sync` and `ingestd plan` as functions that return objects.

Both functions use a separate thread, so they also work while an event loop is running. They configure no log and install no
signal handler. An interrupt (Ctrl-C) ends a call after the requests in flight.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import msgspec

from ingestd.commands.loop import run_in_thread
from ingestd.commands.one_shot_sync import SyncReport
from ingestd.commands.one_shot_sync import sync as sync_once
from ingestd.commands.rejected_export import iter_rejections
from ingestd.commands.sync_plan.execution import plan as make_plan
from ingestd.commands.sync_plan.values import SyncPlan
from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.daemon.configuration import Configuration, chosen_pipelines, read_configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.pipeline_states import pause_sentence
from ingestd.mirror.port import HeldRun
from ingestd.mirror.rejections import Rejection, Selection
from ingestd.mirror.sqlite import Observer, SqliteMirror
from ingestd.registry import connector_class
from ingestd.settings.document import read_document
from ingestd.settings.loader import load_settings
from ingestd.settings.model import Settings
from ingestd.telemetry import Event

Configurable: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Settings | None
"""A file's path, a file's content as a mapping, one pipeline as a mapping, or settings; None: the default files."""

_IN_PYTHON = "configuration in Python"


class PipelineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sync for one pipeline.

    ``records``: the number of records read from new content. ``created``, ``updated``, ``unchanged``, ``removed``: numbers of
    their entries in the state file. ``held``: runs that wait for an approval. ``rejections``: rejected records, entries and
    files of this and earlier syncs. ``failures``: a sentence for each unreadable source, file or table, and for a pause.
    """

    name: str
    sink: str
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    held: tuple[HeldRun, ...]
    rejections: tuple[Rejection, ...]
    failures: tuple[str, ...]


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sync. ``delivered``: the number of entries that were sent. ``pending``: the number not sent yet.

    ``blocked``: a sentence for each sink that can't receive its pending entries. ``timed_out``: the time limit ended the sync.
    """

    pipelines: tuple[PipelineResult, ...]
    delivered: int
    pending: int
    blocked: tuple[str, ...]
    timed_out: bool
    exit_code: ExitCode
    """The exit code that `ingestd sync` would have."""

    @property
    def ok(self) -> bool:
        """Whether every source was read, every entry is delivered, and nothing is rejected, held or paused."""
        return self.exit_code is ExitCode.DONE


def sync(
    config: Configurable = None,
    *,
    pipelines: str | Sequence[str] = (),
    service: Mapping[str, Any] | None = None,
    state: str | os.PathLike[str] | None = None,
    timeout_seconds: float | None = None,
) -> SyncResult:
    """Read the sources once and deliver their entries, as `ingestd sync` does.

    ``config``: see `Configurable`. A mapping may contain placeholders, like a file; its paths are relative to the working
    folder. ``pipelines``: names; default all. ``service``: the setting `service`, for a mapping without this setting.
    ``state``: replaces the configured state file. If a mapping has no state file, a temporary file is used and deleted at the
    end. The sync then knows the content of the sink, but no earlier readings.

    Raises:
        ConfigurationError: the configuration has mistakes; the error lists every mistake.
        PipelineUnknown: no pipeline has one of the names.
        MirrorError: the state file can't be used; for example `MirrorBusy`, if a daemon runs.
    """
    with _configured(config, service=service, state=state) as configuration:
        names = chosen_pipelines(configuration, [pipelines] if isinstance(pipelines, str) else pipelines)
        report = run_in_thread(
            lambda: sync_once(
                configuration, names, timeout_seconds=timeout_seconds, emit=_keep_quiet, own_process=False
            )
        )
        reader = SqliteMirror.observe(configuration.settings.state)
        try:
            return _result(configuration, names, report, reader)
        finally:
            reader.close()


def plan(
    config: Configurable = None,
    *,
    pipelines: str | Sequence[str] = (),
    service: Mapping[str, Any] | None = None,
    state: str | os.PathLike[str] | None = None,
    rows: int = 10,
) -> SyncPlan:
    """Return what a sync would do, as `ingestd plan` does. Nothing is delivered, stored, archived or deleted.

    ``rows``: the plan contains at most this number of changes of each kind, and of rejections, for each file or table. The
    other arguments and errors are the same as for `sync`. Without a state file, each entry counts as created.
    """
    with _configured(config, service=service, state=state) as configuration:
        names = chosen_pipelines(configuration, [pipelines] if isinstance(pipelines, str) else pipelines)
        made = run_in_thread(lambda: make_plan(configuration, names, rows=rows, emit=_keep_quiet, own_process=False))
        return made.plan


def _keep_quiet(_event: Event) -> None:
    """Log nothing: the log belongs to another program, and the result reports everything."""


@contextmanager
def _configured(
    config: Configurable, *, service: Mapping[str, Any] | None, state: str | os.PathLike[str] | None
) -> Iterator[Configuration]:
    with ExitStack() as stack:
        if isinstance(config, Mapping):
            content: dict[str, Any] = (
                dict(config) if "pipelines" in config or "source" not in config else {"pipelines": [config]}
            )
            content |= {"service": service} if service is not None else {}
            content |= {"state": os.fspath(state)} if state is not None else {}
            if "state" not in content:
                content["state"] = f"{stack.enter_context(TemporaryDirectory(prefix='ingestd-state-'))}/state.db"
            yield _read(content)
            return
        if service is not None:
            raise TypeError("The argument 'service' is for a configuration that is a mapping. Put it into the file.")
        if isinstance(config, Settings):
            found = Configuration(path=Path.cwd() / _IN_PYTHON, settings=config)
        else:
            path = Path(config) if config is not None else None
            found = read_configuration(path, environment=os.environ, cwd=Path.cwd())
        if state is not None:
            settings = found.settings.model_copy(update={"state": Path.cwd() / state})
            found = msgspec.structs.replace(found, settings=settings)
        yield found


def _read(content: Mapping[str, Any]) -> Configuration:
    """Return the configuration in a mapping. Mistakes are reported as for a file, but without line numbers."""
    path = Path.cwd() / _IN_PYTHON
    try:
        document = read_document(json.dumps(content, ensure_ascii=False, default=_plain))  # JSON is YAML
        settings = load_settings(path, options_of=connector_class, environment=os.environ, document=document)
    except ConfigurationError as error:
        mistakes = (Mistake(_IN_PYTHON, 0, 0, one.key, one.sentence) for one in error.mistakes)
        raise ConfigurationError(tuple(mistakes)) from None
    return Configuration(path=path, settings=settings)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"A configuration has no values of the type {type(value).__name__}.")


def _result(configuration: Configuration, names: Sequence[str], report: SyncReport, reader: Observer) -> SyncResult:
    sinks = {one.name: str(one.sink) for one in configuration.settings.pipelines}
    results = []
    for name in names:
        runs = [run for one in report.passes if one.pipeline == name for run in one.read]
        results.append(
            PipelineResult(
                name=name,
                sink=sinks[name],
                records=sum(run.records for run in runs),
                created=sum(run.created for run in runs),
                updated=sum(run.updated for run in runs),
                unchanged=sum(run.unchanged for run in runs),
                removed=sum(run.removed for run in runs),
                held=tuple(one for one in report.held if one.pipeline == name),
                rejections=tuple(iter_rejections(reader, Selection(pipeline=name))),
                failures=(
                    *(sentence for pipeline, sentence in report.failures if pipeline == name),
                    *(pause_sentence(pause) for pause in report.paused if pause.pipeline == name),
                ),
            )
        )
    return SyncResult(
        pipelines=tuple(results),
        delivered=report.delivered,
        pending=report.pending,
        blocked=tuple(dict.fromkeys(str(lane) for lane in report.stuck)),
        timed_out=report.interrupted == "timeout",
        exit_code=report.exit_code,
    )
