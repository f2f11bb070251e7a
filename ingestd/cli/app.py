"""The command `ingestd`: its verbs, the configuration they share, and how an error becomes a sentence and an exit code."""

from __future__ import annotations

import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import click

from ingestd.core.errors import ConfigurationError, IngestdError, MirrorBusy, MirrorError
from ingestd.daemon.control.refusal import Refused
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.process.verbs import Verbs


class DaemonVerbs(Verbs):
    """The verbs of `ingestd`, and what their errors come to."""

    verbs: ClassVar[tuple[str, ...]] = (
        "check",
        "sync",
        "run",
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
            ctx.exit(ExitCode.STATE_BUSY if isinstance(error, MirrorBusy) else ExitCode.STATE_UNUSABLE)
        except Refused as error:
            click.echo(redact_text(str(error)), err=True)
            ctx.exit(ExitCode.STATE_BUSY)
        except IngestdError as error:
            click.echo(redact_text(str(error)), err=True)
            ctx.exit(ExitCode.BUG)
        except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # noqa: BLE001 - the last line of defence: a traceback must not show a key either
            click.echo(redact_text(traceback.format_exc()), err=True)
            click.echo("This is a mistake in ingestd itself; please report it with the lines above.", err=True)
            ctx.exit(ExitCode.BUG)


_CONFIG = "The configuration; else INGESTD_CONFIG, ./ingestd.yaml or /etc/ingestd/ingestd.yaml."
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=DaemonVerbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-c", "--config", type=_FILE, help=_CONFIG)
@click.version_option(version("ingestd"), prog_name="ingestd", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Keep the data sinks of an engineering data workspace equal to files, folders and databases.

    Exit codes: 0 done, 1 a bug, 2 a mistake in the command line, 74 the state file can't be used,
    75 another process holds the state file or the daemon can't answer, 78 a mistake in the configuration; others with the verb.
    """
    ctx.obj = config
