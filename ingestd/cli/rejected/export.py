"""`ingestd rejected export`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.rejected.selection import with_selection
from ingestd.commands.output_file import OutputUnwritable, replacing
from ingestd.commands.rejected_export import ExportFormat, RejectionExport, SeveralTables
from ingestd.commands.status import observe
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.mirror.rejections import Selection
from ingestd.process.terminal_text import echo


@click.command()
@click.option("--format", "form", type=click.Choice(["csv", "ndjson"]), default="csv", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True, dir_okay=False),
    metavar="FILENAME",
    default="-",
    help="Default: standard output.",
)
@with_configuration_without_secrets
@with_selection
def export(selection: Selection, configuration: Configuration, form: ExportFormat, output: str) -> None:
    """Write rejected records to a file that you can correct and put back into its folder.

    The columns are those of the source, then _reason, _field, _file, _row and _number, which are ignored when the file is read.
    A line that could not be parsed is in the column 'text'. Entries that the service refused, and files that can't be read, have
    no record to export: correct them at their source.

    Example: ingestd rejected export --pipeline mass-budget -o corrected.csv
    """
    found = RejectionExport(partial(observe, configuration), selection, form)
    try:
        with click.open_file("-", "w", encoding="utf-8") if output == "-" else replacing(Path(output)) as file:
            for text in found.pages():
                file.write(text)
    except SeveralTables as error:
        raise click.UsageError(str(error)) from error
    except OutputUnwritable as error:
        echo(str(error), err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    rest = f"; {found.without_record} more have no record to export" if found.without_record else ""
    echo(f"{counted(found.written, 'record')} written{rest}.", err=True)
