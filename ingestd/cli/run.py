"""`ingestd run`."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import configuration_at, with_configuration_path
from ingestd.cli.pause import report
from ingestd.commands.control_client import call_daemon
from ingestd.commands.loop import run_to_end
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.caller import NoDaemon
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import ControlPipeline, PipelineControlled
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.lifecycle import run as run_daemon
from ingestd.process.logs import Level, configure_logs
from ingestd.process.notify import Notifier
from ingestd.process.terminal_text import echo
from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.daemon import ManagerUnreachable
from ingestd.telemetry.export import exported_telemetry
from ingestd.telemetry.summed_readings import summed_readings
from ingestd.web.application import serve
from ingestd.web.event_counts import EventCounts

if TYPE_CHECKING:
    from ingestd.daemon.standby_phase import StandbyPhase


@click.command()
@click.argument("pipeline", type=PIPELINE, required=False)
@click.option(
    "--log-level",
    type=click.Choice(get_args(Level)),
    default="info",
    show_default=True,
    help="The least severe level that is logged.",
)
@click.option(
    "--standby",
    metavar="FOLDER|s3://BUCKET/PREFIX|postgresql://USER@HOST/DATABASE",
    envvar="INGESTD_STANDBY",
    help="Where the active daemon ships its state, for the standbys of the same configuration.",
)
@with_configuration_path
def run(path: Path | None, pipeline: str | None, log_level: Level, standby: str | None) -> None:
    """Run the daemon until SIGTERM or Ctrl-C; or have the running daemon read a PIPELINE now.

    With a PIPELINE, the running daemon reads its source now, independent of its schedule, and sends new entries. The command
    returns at once; 'ingestd status' shows the result. If the source asked for a wait, it is read after the wait. Without a
    daemon, 'ingestd sync' reads a pipeline.

    Without a PIPELINE, the daemon runs in the foreground. After the signal it drains and ends within ten seconds. A second
    signal ends it at once. The log goes to standard error: text on a terminal, else JSON. The daemon notifies systemd of its
    readiness and status.

    With --standby, only one of several daemons of a configuration is active: the daemon that holds the lease of the service. It
    ships its state file to a folder, a bucket or a database. All other daemons wait. If the lease ends, one of them restores
    the newest state and continues. The service refuses the former active daemon, which ends with exit code 75. The environment
    variable INGESTD_STANDBY replaces the option, and keeps a password out of the list of processes.

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
        notifier = Notifier.from_environment(
            on_failure=lambda reason: emit_and_count(ManagerUnreachable(reason=reason))
        )
        phase = _make_phase(configuration, standby, emit=emit_and_count) if standby else None
        run_to_end(run_daemon(configuration, emit=emit_and_count, notifier=notifier, serve=serve_pages, standby=phase))
    if phase is not None and phase.standby.ends_because:
        echo(f"This daemon is not active any more. {phase.standby.ends_because}", err=True)
        sys.exit(ExitCode.STATE_BUSY)


def _make_phase(configuration: Configuration, url: str, *, emit: Emit) -> StandbyPhase:
    # Imported here, because a single daemon does not need it.
    from ingestd.daemon.standby_phase import StandbyPhase  # noqa: PLC0415
    from ingestd.web.standby_application import serve_standby  # noqa: PLC0415

    return StandbyPhase(configuration, url, emit=emit, serve=partial(serve_standby, emit=emit))


def _read_now(configuration: Configuration, pipeline: str) -> None:
    state = configuration.settings.state
    try:
        response = asyncio.run(call_daemon(state, ControlPipeline(pipeline=pipeline, action="run")))
    except NoDaemon:
        raise RequestRefused(
            f"No daemon runs with the state file {state}. Without a daemon, 'ingestd sync {pipeline}' reads the pipeline now."
        ) from None
    if not isinstance(response, PipelineControlled):
        raise TypeError(f"the response is {response!r}")
    report(response)
