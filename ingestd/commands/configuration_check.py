"""Checks of `ingestd check`: whether the state file, the sources and the service are usable.

The checks change nothing, except that a connector may store its certificate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal

import msgspec

from ingestd.commands.sampled_fields import check_fields
from ingestd.commands.status import observe
from ingestd.core.errors import SourceError
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping, parse_template
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.parts import connect_service, open_connector
from ingestd.daemon.reporting import held_line
from ingestd.intake import LookupFiles
from ingestd.mirror.sqlite import examine, state_exists
from ingestd.process.supervision import one_line
from ingestd.sdk import Connector, Step, Verifies

STATE_SECONDS = 20.0
"""Time limit for reading a large state file. If the limit ends the check, the result says so."""


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A step and its subject: ``configuration``, ``state``, ``service`` or a pipeline's name."""

    subject: str
    step: Step


def check_configuration(configuration: Configuration) -> Iterator[CheckFinding]:
    """Report that the configuration file was read, and its unusual settings."""
    pipelines = counted(len(configuration.settings.pipelines), "pipeline")
    sentence = f"{configuration.path} has no mistake: {pipelines}."
    yield CheckFinding(subject="configuration", step=Step(name="read", outcome="passed", sentence=sentence))
    yield from _check_values(configuration)


def check_access(configuration: Configuration) -> Iterator[CheckFinding]:
    """Check the state file, and then each source."""
    usable = True
    for finding in _check_state(configuration):
        usable = usable and finding.step.outcome == "passed"
        yield finding
    if usable:
        yield from _check_held_runs(configuration)
    yield from _check_sources(configuration)


def _check_state(configuration: Configuration) -> Iterator[CheckFinding]:
    """Check within ``STATE_SECONDS`` that this process can use the state file, and that the file is not damaged."""
    for found in examine(configuration.settings.state, seconds=STATE_SECONDS):
        outcome: Literal["passed", "failed", "skipped"] = (
            "failed" if found.error else "skipped" if found.outdated else "passed"
        )
        step = Step(name="usable", outcome=outcome, sentence=found.sentence)
        yield CheckFinding(subject="state", step=step)


def _check_held_runs(configuration: Configuration) -> Iterator[CheckFinding]:
    """Report each held run, because its partition delivers nothing until the run is approved, discarded or replaced."""
    if state_exists(configuration.settings.state):
        with observe(configuration) as mirror:
            for held in mirror.held_runs():
                step = Step(name="held", outcome="skipped", sentence=held_line(held))
                yield CheckFinding(subject=held.pipeline, step=step)


def _check_values(configuration: Configuration) -> Iterator[CheckFinding]:
    """Report each ``value`` that names no field, because the user may have intended an expression."""
    for pipeline in configuration.settings.pipelines:
        for spec in pipeline.entries:
            if spec.value and not parse_template(spec.value).fields:
                sentence = (
                    f"The entries {spec.key} all get the same value, the text {spec.value!r}, because it has no field in braces. "
                    f"Write value: {{expr: {spec.value!r}}} if it is an expression."
                )
                yield CheckFinding(
                    subject=pipeline.name, step=Step(name="values", outcome="skipped", sentence=sentence)
                )


def _check_sources(configuration: Configuration) -> Iterator[CheckFinding]:
    """Read the lookup files, and check the access of each pipeline's connector. Blocks until a database server responds."""
    for pipeline in configuration.settings.pipelines:
        connector: Connector | None = None
        try:
            LookupFiles(Mapping(pipeline.entries).table_sources, base=configuration.base).read()
            connector = open_connector(configuration, pipeline)
            if not isinstance(connector, Verifies):
                sentence = f"The connector {pipeline.source.connector!r} has no check."
                yield CheckFinding(
                    subject=pipeline.name, step=Step(name="access", outcome="skipped", sentence=sentence)
                )
                continue
            groups = Aggregation(pipeline.group) if pipeline.group is not None else None
            for step in check_fields(connector, connector.verify(), Mapping(pipeline.entries), groups):
                yield CheckFinding(subject=pipeline.name, step=step)
        except SourceError as error:
            yield CheckFinding(subject=pipeline.name, step=Step(name="access", outcome="failed", sentence=str(error)))
        except Exception as error:  # noqa: BLE001 - a plug-in's failure must not prevent the check of other pipelines
            yield _failed(pipeline.name, error)
        finally:
            try:
                if connector is not None:
                    connector.close()
            except Exception as error:  # noqa: BLE001 - as above
                yield _failed(pipeline.name, error)


def _failed(pipeline: str, error: Exception) -> CheckFinding:
    sentence = f"The connector failed: {one_line(error)}. Please report it."
    return CheckFinding(subject=pipeline, step=Step(name="access", outcome="failed", sentence=sentence))


async def check_service(configuration: Configuration) -> AsyncIterator[CheckFinding]:
    """Check that the service responds and accepts the key, and that the key can read each workspace of the pipelines."""
    async with connect_service(configuration.settings) as client:
        response = await client.list_workspaces()
        if response.value is None:
            yield _service("reachable", "failed", f"{client.address}: {response.outcome.sentence}")
            return
        yield _service("reachable", "passed", f"{client.address} responded in {response.milliseconds:.0f} ms.")
        labels = [workspace.label for workspace in response.value]
        ids = {workspace.id for workspace in response.value}
        for name in dict.fromkeys(pipeline.sink.workspace for pipeline in configuration.settings.pipelines):
            if name in ids or labels.count(name) == 1:
                yield _service("workspace", "passed", f"The key can read the workspace {name}.")
            elif name in labels:
                sentence = (
                    f"{labels.count(name)} workspaces have the label {name!r}. Configure the id of the right workspace."
                )
                yield _service("workspace", "failed", sentence)
            else:
                sentence = f"The key can read no workspace {name!r}. Check its label or id, and the rights of the key."
                yield _service("workspace", "failed", sentence)


def _service(name: str, outcome: Literal["passed", "failed"], sentence: str) -> CheckFinding:
    return CheckFinding(subject="service", step=Step(name=name, outcome=outcome, sentence=sentence))
