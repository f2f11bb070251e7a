"""The command `ingestd`: its verbs, their common options, and the error sentences and exit codes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import click

from ingestd.core.errors import ConfigurationError, IngestdError, MirrorBusy, MirrorError, MirrorFull
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo
from ingestd.process.verbs import Verbs


class DaemonVerbs(Verbs):
    """The verbs of `ingestd`, with the conversion of errors to exit codes."""

    verbs: ClassVar[Mapping[str, str]] = {
        "init": "Write a first configuration: ask for the service and a sample, show what it understood, choose the columns.",
        "check": "Find mistakes before anything runs.",
        "doctor": "Check the configuration, the sources, the service and this machine.",
        "test": "Test the mappings with cases.",
        "plan": "Show what a sync would do now. Nothing is delivered, stored, archived or deleted.",
        "sync": "Read every source once and deliver until nothing is pending.",
        "run": "Run the daemon until SIGTERM or Ctrl-C; or have the running daemon read a PIPELINE now.",
        "pause": "Stop reading a PIPELINE and sending its entries, until 'ingestd resume'.",
        "resume": "End the pause of a PIPELINE.",
        "reload": "Make the running daemon read its configuration again and apply the changes.",
        "status": "Show delivered, pending and rejected entries.",
        "top": "Show pipelines and sinks live: state, pending, rejected, throughput and lag.",
        "support-bundle": "Write a bundle of facts for a report of a problem, without secrets and values.",
        "why": "Show why a file waits, or what happened to it.",
        "trace": "Show the source of the value of a KEY, and its former values.",
        "rejected": "Show, export, retry or drop rejected records, entries and files.",
        "drift": "Read sinks back and list the keys that others changed.",
        "cursor": "Show or move the cursors of partitions.",
        "backfill": "Read a whole table again while its changes continue to arrive.",
        "database": "Show what the administrator of a database may install.",
        "connector": "Write a package with your own connector, or check such a package.",
        "approve": "Deliver a run that the guard or the contract holds.",
        "discard": "Delete a run that the guard or the contract holds, and keep what is delivered.",
        "rollback": "Restore the values that entries had before a RUN, or before all runs since a time.",
        "standby": "Show or change which of the daemons with `ingestd run --standby` is active.",
        "backup": "Copy the state file to the new FILE, while the daemon runs or not.",
        "restore": "Replace the state file by the backup FILE.",
        "install-units": "Write the systemd units of the daemon and of the service.",
        "demo": "Run the service and the daemon on this machine with sample files.",
        "schema": "Print the JSON Schema of the configuration.",
    }
    package: ClassVar[str] = "ingestd.cli"
    deferred: ClassVar[Sequence[str]] = ("polars", "httpx", "structlog", "sqlglot", "pint", "jinja2")
    """Libraries that a verb imports at their first use."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "validate": "check",
        "apply": "sync",
        "start": "run",
        "daemon": "run",
        "explain": "why",
        "history": "trace",
    }

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb. Defer SIGHUP for ``run``: a reload that is requested during the imports must not end the process."""
        if cmd_name == "run":
            from ingestd.process.hangup import defer_hangups  # noqa: PLC0415 - no other verb needs it

            defer_hangups()
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb. An expected error prints a sentence to standard error and sets the matching exit code."""
        try:
            _check_working_directory()
            return super().invoke(ctx)
        except ConfigurationError as error:
            for mistake in error.mistakes:
                _print_error(mistake)
            ctx.exit(ExitCode.CONFIGURATION)
        except MirrorError as error:
            _print_error(error)
            is_temporary = isinstance(error, MirrorBusy | MirrorFull)
            ctx.exit(ExitCode.STATE_BUSY if is_temporary else ExitCode.STATE_UNUSABLE)
        except RequestRefused as error:
            _print_error(error)
            ctx.exit(ExitCode.STATE_BUSY)
        except IngestdError as error:
            _print_error(error)
            ctx.exit(ExitCode.BUG)
        except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the top-level handler
            _report_bug(error, debug=bool(ctx.params.get("debug")))
            ctx.exit(ExitCode.BUG)


def _check_working_directory() -> None:
    """Raise click.UsageError if relative paths can't be used, because a program deleted or replaced the folder."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise click.UsageError(
            "The working directory of this command was deleted, or deleted and created again. Change to an existing folder with"
            " 'cd', then run the command again."
        ) from None


def _print_error(error: object) -> None:
    from ingestd.process.terminal_text import safe_line  # noqa: PLC0415 - help needs none of these packages

    echo(safe_line(str(error)), err=True)


def _report_bug(error: BaseException, *, debug: bool) -> None:
    """Print a sentence about an unexpected exception. The traceback goes to the log, or with ``debug`` to stderr."""
    # Imported here, because importing the log takes longer than all other work of `--help`.
    from ingestd.process.logs import flush_logs, logs_configured  # noqa: PLC0415
    from ingestd.process.supervision import one_line  # noqa: PLC0415
    from ingestd.telemetry import log_event  # noqa: PLC0415
    from ingestd.telemetry.catalogue.daemon import CommandFailed  # noqa: PLC0415

    trace = redact_text("".join(traceback.format_exception(error)))
    in_log = not debug and logs_configured()
    if debug:
        echo(trace, err=True, nl=False)
    elif in_log:
        log_event(CommandFailed(traceback=trace))
        flush_logs()
    if debug:
        hint = "The traceback is above."
    elif in_log:
        hint = "The log has the traceback."
    else:
        hint = "To see the traceback, put --debug before the verb: 'ingestd --debug ...'."
    echo(
        f"ingestd failed with an unexpected error: {redact_text(one_line(error))}. This is a bug in ingestd; "
        f"please report it. {hint}",
        err=True,
    )


_CONFIG = "The configuration file. Default: INGESTD_CONFIG, ./ingestd.yaml or /etc/ingestd/ingestd.yaml."
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=DaemonVerbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-c", "--config", type=_FILE, help=_CONFIG)
@click.option("--debug", is_flag=True, help="Print the traceback of an unexpected error.")
@click.version_option(package_name="ingestd", prog_name="ingestd", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, config: Path | None, debug: bool) -> None:  # noqa: ARG001 - `DaemonVerbs.invoke` reads it
    """Keep the data sinks of an engineering data workspace equal to files, folders and databases.

    Exit codes: 0 done, 2 a mistake in the command line, 70 a bug, 73 the output can't be written, 74 the state file can't be
    used, 75 the state file can't be used now (another process holds it, or the disk is full) or the daemon can't respond, 78 a
    mistake in the configuration. The help of a verb lists its other exit codes.

    The environment variable NO_COLOR, with any value, disables colours.

    Example: ingestd check -c /etc/ingestd/ingestd.yaml
    """
    ctx.obj = config
    if os.environ.get("NO_COLOR"):  # https://no-color.org
        ctx.color = False
