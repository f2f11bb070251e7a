"""`ingestd rejected list`, `show` and `export`, which change nothing."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.cli.rejected.presentation import format_details, format_line, to_json
from ingestd.cli.rejected.selection import require_explicit, with_selection
from ingestd.commands.output_file import OutputUnwritable, replacing
from ingestd.commands.rejected_export import ExportFormat, RejectionExport, SeveralTables, iter_rejections
from ingestd.commands.status import observe, refuse_on_standby
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.mirror.rejections import Rejection, Selection
from ingestd.process.terminal_text import echo, echo_lines, terminal_line


@click.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of lines.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="Start after this number.")
@json_option("Print one JSON object for each rejection, one per line, without a limit.")
@with_configuration_without_secrets
@with_selection
def list_(selection: Selection, configuration: Configuration, limit: int, after: int, as_json: bool) -> None:
    """List rejections, oldest first, one line for each.

    A rejection keeps its number, and numbers are never reused.

    Example: ingestd rejected list --pipeline mass-budget --file '*.csv'
    """
    refuse_on_standby(configuration.settings.state)
    with observe(configuration) as mirror:
        if as_json:
            echo_lines(map(to_json, iter_rejections(mirror, selection)))
            return
        page = mirror.selected(selection, after=after, limit=limit)
        for rejection in page:
            echo(format_line(rejection))
        total = mirror.count(selection)
        if not total:
            echo("Nothing is rejected." if selection == Selection() else "No rejection matches.")
        elif page and mirror.selected(selection, after=page[-1].id, limit=1):
            echo(f"{len(page)} of {total}; --after {page[-1].id} shows the next ones.")


@click.command()
@json_option("Print one JSON object for each rejection, one per line.")
@with_configuration_without_secrets
@with_selection
def show(selection: Selection, configuration: Configuration, as_json: bool) -> None:
    """Show rejections with all details: the record, its location, the reason, and every attempt.

    Exit codes: 0 shown, 1 no rejection matches.

    Example: ingestd rejected show 17
    """
    selection = require_explicit(selection, everything=False)
    refuse_on_standby(configuration.settings.state)
    with observe(configuration) as mirror:

        def describe(rejection: Rejection) -> str:
            refusals = mirror.refusals(rejection.id) if rejection.subject == "entry" else []
            if as_json:
                return to_json(rejection, refusals)
            return "\n".join(map(terminal_line, format_details(rejection, refusals)))

        found = echo_lines(map(describe, iter_rejections(mirror, selection)))
    if not found:
        echo("No rejection matches.", err=True)
        sys.exit(1)


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

    The file has the columns of the source, then _reason, _field, _file, _row and _number. These five columns are ignored when
    the file is read. A line that could not be parsed is in the column 'text'. Entries that the service refused, and files that
    can't be read, have no record to export: correct them at their source.

    Give the file another name than the original file, which it would replace. Its rows are new rows, so the former rejections
    remain until 'ingestd rejected drop' deletes them.

    Example: ingestd rejected export --pipeline mass-budget -o corrected.csv
    """
    refuse_on_standby(configuration.settings.state)
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
