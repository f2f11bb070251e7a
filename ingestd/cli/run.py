"""`ingestd run`."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import get_args

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import configuration_at, with_configuration_path
from ingestd.cli.pause import report
from ingestd.commands.loop import run_to_end
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import ControlPipeline, PipelineControlled
from ingestd.daemon.lifecycle import run as run_daemon
from ingestd.process.logs import Level, configure_logs
from ingestd.process.notify import Notifier
from ingestd.telemetry import Event, log_event
from ingestd.telemetry.export import exported_telemetry
from ingestd.telemetry.summed_readings import summed_readings
from ingestd.web.application import serve
from ingestd.web.event_counts import EventCounts


@click.command()
@click.argument("pipeline", type=PIPELINE, required=False)
@click.option(
    "--log-level",
    type=click.Choice(get_args(Level)),
    default="info",
    show_default=True,
    help="The least severe level that is logged.",
)
@with_configuration_path
def run(path: Path | None, pipeline: str | None, log_level: Level) -> None:
    """Run the daemon until SIGTERM or Ctrl-C; or have the running daemon read a PIPELINE now.

    With a PIPELINE, the running daemon reads its source now, whatever its schedule is, and sends what is new. The command returns
    at once; 'ingestd status' shows the result. A source that asked for a wait is read after it. Without a daemon, 'ingestd sync'
    reads a pipeline.

    Without one, the daemon runs in the foreground. After the signal it drains and ends within ten seconds. A second signal ends
    it at once. The log goes to standard error: text on a terminal, else JSON. The daemon notifies systemd when it is ready and of
    its status.

    Exit codes with a PIPELINE: 0 the daemon reads it, 1 there is no such pipeline, or it is paused, 75 no daemon runs.

    Example: ingestd run --log-level warning
    """
    configuration = configuration_at(path, secrets=pipeline is None)
    if pipeline is not None:
        _read_now(configuration, pipeline)
        return
    configure_logs(level=log_level)
    counts = EventCounts()
    with summed_readings(log_event) as log, exported_telemetry(log) as emit:

        def emit_and_count(event: Event) -> None:
            emit(event)
            counts.note(event)

        serve_pages = partial(serve, counts=counts, emit=emit)
        notifier = Notifier.from_environment()
        run_to_end(run_daemon(configuration, emit=emit_and_count, notifier=notifier, serve=serve_pages))


def _read_now(configuration: Configuration, pipeline: str) -> None:
    state = configuration.settings.state
    try:
        response = asyncio.run(call(state, ControlPipeline(pipeline=pipeline, action="run")))
    except NoDaemon:
        raise RequestRefused(
            f"No daemon runs with the state file {state}. Without one, 'ingestd sync {pipeline}' reads the pipeline now."
        ) from None
    if not isinstance(response, PipelineControlled):
        raise TypeError(f"the response is {response!r}")
    report(response)
