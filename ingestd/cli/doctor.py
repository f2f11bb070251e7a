"""`ingestd doctor`."""

from __future__ import annotations

import asyncio
import sys

import click

from ingestd.cli.check import exit_code, print_findings, print_service
from ingestd.cli.options import json_option, with_configuration
from ingestd.commands.configuration_check import check_access, check_configuration
from ingestd.commands.machine_check import check_machine
from ingestd.daemon.configuration import Configuration


@click.command()
@json_option("Print one JSON object for each step, one per line.")
@with_configuration
def doctor(configuration: Configuration, as_json: bool) -> None:
    """Check the configuration, the sources, the service and this machine.

    Runs the steps of 'ingestd check', then checks versions, free space, clock, descriptors, the limits of inotify, and the
    modes of files with secrets or values. Attach the output to a report of a problem: it contains no secret and no value.

    Exit codes: 0 no problem found, 5 a source, the service or the machine has a problem, 74 the state file can't be used, 78
    the configuration has mistakes.

    Example: ingestd doctor > report.txt
    """
    findings = print_findings(check_configuration(configuration), as_json=as_json)
    findings += print_findings(check_access(configuration), as_json=as_json)
    findings += asyncio.run(print_service(configuration, as_json=as_json))
    findings += print_findings(check_machine(configuration), as_json=as_json)
    sys.exit(exit_code(findings))
