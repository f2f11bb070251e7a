"""`ingestd resume`."""

from __future__ import annotations

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.pause import control
from ingestd.daemon.configuration import Configuration
from ingestd.process.terminal_text import echo


@click.command()
@click.argument("pipeline", type=PIPELINE)
@with_configuration_without_secrets
def resume(configuration: Configuration, pipeline: str) -> None:
    """End the pause of a PIPELINE.

    A daemon then sends the pending entries of the pipeline and reads its source: at once, or at the next scheduled time if the
    pipeline has a schedule and missed no run. Without a daemon, the next run or sync does this.

    Exit codes: 0 the pipeline is not paused any more, 1 there is no such pipeline.

    Example: ingestd resume mass-budget
    """
    if not control(configuration, pipeline, "resume"):
        echo("No daemon runs. The next run or sync reads the pipeline and sends its pending entries.")
