"""`ingestd rejected list`."""

from __future__ import annotations

import click

from ingestd.cli.line_output import echo_lines
from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.cli.rejected.presentation import format_line, to_json
from ingestd.cli.rejected.selection import with_selection
from ingestd.commands.rejected_export import iter_rejections
from ingestd.commands.status import observe
from ingestd.daemon.configuration import Configuration
from ingestd.mirror.rejections import Selection
from ingestd.process.terminal_text import echo


@click.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of lines.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="Start after this number.")
@json_option("Print a JSON object a rejection, one a line, without a limit.")
@with_configuration_without_secrets
@with_selection
def list_(selection: Selection, configuration: Configuration, limit: int, after: int, as_json: bool) -> None:
    """List rejections, oldest first, one line for each.

    A rejection keeps its number, and numbers are never reused.

    Example: ingestd rejected list --pipeline mass-budget --file '*.csv'
    """
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
