"""`ingestd check`."""

from __future__ import annotations

import asyncio
import sys

import click

from ingestd.cli.options import with_configuration
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_check import (
    CheckFinding,
    check_held_runs,
    check_service,
    check_sources,
    check_state,
    check_values,
)
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.sdk import Step

_COLOURS = {"passed": "green", "failed": "red", "skipped": "yellow"}


@click.command()
@click.option("--configuration-only", is_flag=True, help="Check only the configuration file.")
@click.option("--offline", is_flag=True, help="Do not connect to the service.")
@click.option("--online", is_flag=True, hidden=True)
@with_configuration
def check(configuration: Configuration, configuration_only: bool, offline: bool, online: bool) -> None:
    """Find mistakes before anything runs. Nothing is changed.

    Checks the configuration, the state file, the access to every source, and the service: its address, the API key and the
    workspaces. Each step prints one line.

    Exit codes: 0 no mistake found, 5 a source or the service can't be used as configured, 74 the state file can't be used,
    78 the configuration has mistakes (each with file, line and column on standard error).
    """
    if online:
        click.echo("--online is deprecated: check connects to the service by default. Remove the option.", err=True)
    count = len(configuration.settings.pipelines)
    sentence = f"{configuration.path} has no mistake: {count} pipeline{'' if count == 1 else 's'}."
    findings = [
        _shown(CheckFinding(subject="configuration", step=Step(name="read", outcome="passed", sentence=sentence)))
    ]
    findings += [_shown(finding) for finding in check_values(configuration)]
    if not configuration_only:
        findings += [_shown(finding) for finding in check_state(configuration)]
        if all(finding.step.outcome != "failed" for finding in findings):
            findings += [_shown(finding) for finding in check_held_runs(configuration)]
        findings += [_shown(finding) for finding in check_sources(configuration)]
    if not configuration_only and not offline:
        findings += asyncio.run(_online(configuration))
    failed = {finding.subject for finding in findings if finding.step.outcome == "failed"}
    if "state" in failed:
        sys.exit(ExitCode.STATE_UNUSABLE)
    if failed:
        sys.exit(ExitCode.SOURCE_FAILED)


async def _online(configuration: Configuration) -> list[CheckFinding]:
    return [_shown(finding) async for finding in check_service(configuration)]


def _shown(finding: CheckFinding) -> CheckFinding:
    step = finding.step
    outcome = click.style(f"{step.outcome:<8}", fg=_COLOURS[step.outcome])
    click.echo(f"{outcome}{finding.subject} · {step.name}: {redact_text(step.sentence)}")
    return finding
