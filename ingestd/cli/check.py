"""`ingestd check`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable

import click

from ingestd.cli.options import json_option, with_configuration
from ingestd.commands.configuration_check import CheckFinding, check_access, check_configuration, check_service
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo, safe_line

_COLOURS = {"passed": "green", "failed": "red", "skipped": "yellow"}


@click.command()
@click.option("--configuration-only", is_flag=True, help="Check only the configuration file.")
@click.option("--offline", is_flag=True, help="Do not connect to the service.")
@json_option("Print one JSON object for each step, one per line.")
@with_configuration
def check(configuration: Configuration, configuration_only: bool, offline: bool, as_json: bool) -> None:
    """Find mistakes before anything runs. Nothing is changed.

    Checks the configuration, the state file, the access to every source, and the service: its address, the API key and the
    workspaces. Each step prints one line.

    Exit codes: 0 no mistake found, 5 a source or the service can't be used as configured, 74 the state file can't be used,
    78 the configuration has mistakes (each with file, line and column on standard error).

    Example: ingestd check --offline
    """
    findings = print_findings(check_configuration(configuration), as_json=as_json)
    if not configuration_only:
        findings += print_findings(check_access(configuration), as_json=as_json)
    if not configuration_only and not offline:
        findings += asyncio.run(print_service(configuration, as_json=as_json))
    sys.exit(exit_code(findings))


async def print_service(configuration: Configuration, *, as_json: bool) -> list[CheckFinding]:
    """Check the service and print each step. Return the steps."""
    return [finding async for finding in check_service(configuration) if _printed(finding, as_json=as_json)]


def print_findings(findings: Iterable[CheckFinding], *, as_json: bool) -> list[CheckFinding]:
    """Print each step when it ends. Return the steps."""
    return [finding for finding in findings if _printed(finding, as_json=as_json)]


def exit_code(findings: Iterable[CheckFinding]) -> ExitCode:
    """Return the exit code for the outcomes of the steps."""
    failed = {finding.subject for finding in findings if finding.step.outcome == "failed"}
    if "state" in failed:
        return ExitCode.STATE_UNUSABLE
    return ExitCode.SOURCE_FAILED if failed else ExitCode.DONE


def finding_object(finding: CheckFinding) -> dict[str, str]:
    """Return a step as the members of a JSON object."""
    step = finding.step
    return {
        "subject": finding.subject,
        "step": step.name,
        "outcome": step.outcome,
        "sentence": redact_text(step.sentence),
    }


def _printed(finding: CheckFinding, *, as_json: bool) -> bool:
    if as_json:
        echo(json.dumps(finding_object(finding), ensure_ascii=False))
        return True
    step = finding.step
    click.secho(f"{step.outcome:<8}", fg=_COLOURS[step.outcome], nl=False)
    echo(f"{finding.subject} · {step.name}: {safe_line(step.sentence)}")
    return True
