"""`ingestd check`."""

from __future__ import annotations

import asyncio
import sys

import click

from ingestd.cli.options import configured
from ingestd.daemon.checking import Finding, check_service, check_sources
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.sdk import Step

_COLOURS = {"passed": "green", "failed": "red", "skipped": "yellow"}


@click.command()
@click.option("--configuration-only", is_flag=True, help="Leave the sources alone: only what the file itself says.")
@click.option("--online", is_flag=True, help="Ask the service, too: is it there, does it take the key?")
@configured
def check(configuration: Configuration, configuration_only: bool, online: bool) -> None:
    """Find mistakes before anything runs; nothing is changed.

    Reads the configuration and lets every source verify its access, one line a step.

    Exit codes: 0 all is well, 5 a source or the service can't be used as configured,
    78 the configuration has mistakes (each with file, line and column on standard error).
    """
    count = len(configuration.settings.pipelines)
    sentence = f"{configuration.path} has no mistake: {count} pipeline{'' if count == 1 else 's'}."
    findings = [_shown(Finding(subject="configuration", step=Step(name="read", outcome="passed", sentence=sentence)))]
    if not configuration_only:
        findings += [_shown(finding) for finding in check_sources(configuration)]
    if online:
        findings += asyncio.run(_online(configuration))
    if any(finding.step.outcome == "failed" for finding in findings):
        sys.exit(ExitCode.SOURCE_FAILED)


async def _online(configuration: Configuration) -> list[Finding]:
    return [_shown(finding) async for finding in check_service(configuration)]


def _shown(finding: Finding) -> Finding:
    step = finding.step
    outcome = click.style(f"{step.outcome:<8}", fg=_COLOURS[step.outcome])
    click.echo(f"{outcome}{finding.subject} · {step.name}: {redact_text(step.sentence)}")
    return finding
