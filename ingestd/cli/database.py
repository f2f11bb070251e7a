"""`ingestd database`: what the administrator of a database may install."""

from __future__ import annotations

import sys

import click

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, with_configuration
from ingestd.core.errors import SourceBroken
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.parts import open_connector
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo


@click.group()
def database() -> None:
    """Show what the administrator of a database may install. ingestd itself only reads.

    Example: ingestd database sql pdm-parts
    """


@database.command()
@click.argument("pipeline", type=PIPELINE)
@with_configuration
def sql(configuration: Configuration, pipeline: str) -> None:
    """Print SQL that an administrator may execute for PIPELINE. ingestd executes none of it.

    The SQL creates a role that only reads, the trigger of `notify`, the `slot`, and an index for `cursor`. Comments contain the
    SQL that removes each of them. The database is not opened, and no password is printed.

    Exit codes: 0 done, 5 a name of the source can't be printed.

    Example: ingestd database sql pdm-parts
    """
    chosen_names(configuration, (pipeline,))
    (chosen,) = (one for one in configuration.settings.pipelines if one.name == pipeline)
    connector = open_connector(configuration, chosen)
    try:
        statements = connector.setup_sql()
        if not statements:
            raise click.UsageError(
                f"The source of pipeline '{pipeline}' is no database (connector: {chosen.source.connector})."
            )
        echo(statements)
    except SourceBroken as error:
        echo(redact_text(str(error)), err=True)
        sys.exit(ExitCode.SOURCE_FAILED)
    finally:
        connector.close()
