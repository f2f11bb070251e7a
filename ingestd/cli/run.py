"""`ingestd run`."""

from __future__ import annotations

from functools import partial
from typing import get_args

import click

from ingestd.cli.options import with_configuration
from ingestd.commands.loop import run_to_end
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.lifecycle import run as run_daemon
from ingestd.process.logs import Level, configure_logs
from ingestd.process.notify import Notifier
from ingestd.telemetry import Event, log_event
from ingestd.telemetry.export import exported_telemetry
from ingestd.telemetry.summed_readings import summed_readings
from ingestd.web.application import serve
from ingestd.web.event_counts import EventCounts


@click.command()
@click.option(
    "--log-level",
    type=click.Choice(get_args(Level)),
    default="info",
    show_default=True,
    help="The least severe level that is logged.",
)
@with_configuration
def run(configuration: Configuration, log_level: Level) -> None:
    """Run the daemon until SIGTERM or Ctrl-C.

    After the signal it drains and ends within ten seconds. A second signal ends it at once. The log goes to standard error: text
    on a terminal, else JSON. The daemon notifies systemd when it is ready and of its status.

    Example: ingestd run --log-level warning
    """
    configure_logs(level=log_level)
    counts = EventCounts()
    with summed_readings(log_event) as log, exported_telemetry(log) as emit:

        def emit_and_count(event: Event) -> None:
            emit(event)
            counts.note(event)

        serve_pages = partial(serve, counts=counts, emit=emit)
        notifier = Notifier.from_environment()
        run_to_end(run_daemon(configuration, emit=emit_and_count, notifier=notifier, serve=serve_pages))
