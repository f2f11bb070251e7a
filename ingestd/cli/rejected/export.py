"""`ingestd rejected export`."""

from __future__ import annotations

from typing import TextIO

import click

from ingestd.cli.options import with_configuration_without_secrets
from ingestd.cli.rejected.selection import with_selection
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.rejected_export import ExportFormat, SeveralTables, export_rejections
from ingestd.daemon.status import observe
from ingestd.mirror.rejections import Selection


@click.command()
@click.option("--format", "form", type=click.Choice(["csv", "ndjson"]), default="csv", show_default=True)
@click.option(
    "-o", "--output", type=click.File("w", encoding="utf-8", atomic=True), default="-", help="Default: standard output."
)
@with_configuration_without_secrets
@with_selection
def export(selection: Selection, configuration: Configuration, form: ExportFormat, output: TextIO) -> None:
    """Write rejected records to a file that you can correct and put back into its folder.

    The columns are those of the source, then _reason, _field, _file, _row and _number, which are ignored when the file is read.
    A line that could not be parsed is in the column 'text'. Entries that the service refused, and files that can't be read, have
    no record to export: correct them at their source.

    Example: ingestd rejected export --pipeline mass-budget -o corrected.csv
    """
    with observe(configuration) as mirror:
        try:
            written, without = export_rejections(mirror, selection, form, output)
        except SeveralTables as error:
            raise click.UsageError(str(error)) from error
    rest = f"; {without} more have no record to export" if without else ""
    click.echo(f"{counted(written, 'record')} written{rest}.", err=True)
