"""The command `ingestd`: its verbs, the configuration they share, and how an error becomes a sentence and an exit code."""

from __future__ import annotations

import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import click

from ingestd.core.errors import ConfigurationError, IngestdError, MirrorBusy, MirrorError, MirrorFull
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.logs import flush_logs, logs_configured
from ingestd.process.redaction import redact_text
from ingestd.process.supervision import one_line
from ingestd.process.verbs import Verbs
from ingestd.telemetry import log_event
from ingestd.telemetry.catalogue.daemon import CommandFailed


class DaemonVerbs(Verbs):
    """The verbs of `ingestd`, and what their errors come to."""

    verbs: ClassVar[tuple[str, ...]] = (
        "check",
        "sync",
        "run",
        "reload",
        "status",
        "why",
        "trace",
        "rejected",
        "drift",
        "demo",
        "schema",
    )
    package: ClassVar[str] = "ingestd.cli"

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; what it raises on purpose ends in a sentence on standard error and the exit code that fits."""
        try:
            return super().invoke(ctx)
        except ConfigurationError as error:
            for mistake in error.mistakes:
                click.echo(redact_text(str(mistake)), err=True)
            ctx.exit(ExitCode.CONFIGURATION)
        except MirrorError as error:
            click.echo(redact_text(str(error)), err=True)
            passing = isinstance(error, MirrorBusy | MirrorFull)
            ctx.exit(ExitCode.STATE_BUSY if passing else ExitCode.STATE_UNUSABLE)
        except RequestRefused as error:
            click.echo(redact_text(str(error)), err=True)
            ctx.exit(ExitCode.STATE_BUSY)
        except IngestdError as error:
            click.echo(redact_text(str(error)), err=True)
            ctx.exit(ExitCode.BUG)
        except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the last line of defence
            _report_bug(error, debug=bool(ctx.params.get("debug")))
            ctx.exit(ExitCode.BUG)


def _report_bug(error: BaseException, *, debug: bool) -> None:
    """Print a sentence about an unforeseen exception; the traceback is for the log, or for ``--debug``."""
    trace = redact_text("".join(traceback.format_exception(error)))
    in_log = not debug and logs_configured()
    if debug:
        click.echo(trace, err=True, nl=False)
    elif in_log:
        log_event(CommandFailed(traceback=trace))
        flush_logs()
    if debug:
        where = "Its details are above."
    else:
        where = "The log has the details." if in_log else "'ingestd --debug' before the verb shows the details."
    click.echo(
        f"ingestd failed in a way that was not foreseen: {redact_text(one_line(error))}. This is a mistake in ingestd itself; "
        f"please report it. {where}",
        err=True,
    )


_CONFIG = "The configuration; else INGESTD_CONFIG, ./ingestd.yaml or /etc/ingestd/ingestd.yaml."
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=DaemonVerbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-c", "--config", type=_FILE, help=_CONFIG)
@click.option("--debug", is_flag=True, help="Print the traceback of an unforeseen failure.")
@click.version_option(version("ingestd"), prog_name="ingestd", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, config: Path | None, debug: bool) -> None:  # noqa: ARG001 - read where a failure is reported
    """Keep the data sinks of an engineering data workspace equal to files, folders and databases.

    Exit codes: 0 done, 2 a mistake in the command line, 70 a bug, 73 the output can't be written, 74 the state file can't be
    used, 75 it can't be used now (another process holds it, the disk is full) or the daemon can't answer, 78 a mistake in the
    configuration; others with the verb.
    """
    ctx.obj = config
