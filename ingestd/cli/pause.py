"""`ingestd pause`."""

from __future__ import annotations

import sys
from typing import Literal

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import with_configuration_without_secrets
from ingestd.commands.control_client import execute
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import ControlPipeline, PipelineControlled
from ingestd.process.logs import configure_logs
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("pipeline", type=PIPELINE)
@with_configuration_without_secrets
def pause(configuration: Configuration, pipeline: str) -> None:
    """Stop reading a PIPELINE and sending its entries, until 'ingestd resume'.

    The pause is stored: it stays over restarts and reloads, and 'ingestd sync' skips the pipeline. A running reading ends at
    its next batch, and requests in flight end. Other pipelines continue, also pipelines of the same sink. Clients of a push
    source get status 503, and messages of a broker are not acknowledged. The command works without a daemon, too.

    Exit codes: 0 paused, 1 there is no such pipeline.

    Example: ingestd pause mass-budget
    """
    control(configuration, pipeline, "pause")


def control(configuration: Configuration, pipeline: str, action: Literal["pause", "resume"]) -> bool:
    """Pause or resume a pipeline, and print the result. Return whether a daemon executed this. Exit with 1 after a failure."""
    configure_logs(level="error")
    request = ControlPipeline(pipeline=pipeline, action=action)
    response, by_daemon = execute(configuration, request, PipelineControlled)
    report(response)
    return by_daemon


def report(response: PipelineControlled) -> None:
    """Print the sentence of a response. Exit with 1 if the request was not possible."""
    echo(response.sentence, err=not response.is_done)
    if not response.is_done:
        sys.exit(1)
