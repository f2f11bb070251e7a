"""`ingestd rejected list`."""

from __future__ import annotations

import click

from ingestd.cli.options import observing
from ingestd.cli.rejected.presentation import as_json, line
from ingestd.cli.rejected.selection import chosen
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.rejected_export import every
from ingestd.daemon.status import observed
from ingestd.mirror.rejections import Selection


@click.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many to show.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="NUMBER", help="Begin after this number.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@observing
@chosen
def list_(selection: Selection, configuration: Configuration, limit: int, after: int, form: str) -> None:
    """List what is rejected, the oldest first, a line each.

    In JSON it is an object a line, and all of them. A number names a rejection for as long as it is parked and is never used
    again.
    """
    with observed(configuration) as mirror:
        if form == "json":
            for rejection in every(mirror, selection):
                click.echo(as_json(rejection))
            return
        page = mirror.selected(selection, after=after, limit=limit)
        for rejection in page:
            click.echo(line(rejection))
        total = mirror.count(selection)
        if not total:
            click.echo("Nothing is rejected." if selection == Selection() else "Nothing that is rejected fits that.")
        elif page and mirror.selected(selection, after=page[-1].id, limit=1):
            click.echo(f"{len(page)} of {total}; --after {page[-1].id} shows the next.")
