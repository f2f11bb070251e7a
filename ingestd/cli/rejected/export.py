"""`ingestd rejected export`."""

from __future__ import annotations

from typing import TextIO

import click

from ingestd.cli.options import observing
from ingestd.cli.rejected.selection import chosen
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.rejected_export import Form, NotOneTable
from ingestd.daemon.rejected_export import export as write_out
from ingestd.daemon.status import observed
from ingestd.mirror.rejections import Selection


@click.command()
@click.option("--format", "form", type=click.Choice(["csv", "ndjson"]), default="csv", show_default=True)
@click.option(
    "-o", "--output", type=click.File("w", encoding="utf-8", atomic=True), default="-", help="Else the terminal."
)
@observing
@chosen
def export(selection: Selection, configuration: Configuration, form: Form, output: TextIO) -> None:
    """Write rejected records as a file that can be mended by hand and dropped back into its folder.

    The columns are the source's own, then _reason, _field, _file, _row and _number, which a reading leaves alone. A line that
    could not be taken apart stands in the column 'text'. Entries that the service refused, and files that can't be read, have
    no record here: mend them at their source.
    """
    with observed(configuration) as mirror:
        try:
            written, without = write_out(mirror, selection, form, output)
        except NotOneTable as error:
            raise click.UsageError(str(error)) from error
    rest = f"; {without} more have no record to write" if without else ""
    click.echo(f"{written} record{'' if written == 1 else 's'} written{rest}.", err=True)
