"""`ingestd rejected show`."""

from __future__ import annotations

import sys

import click

from ingestd.cli.options import observing
from ingestd.cli.rejected.presentation import as_json, whole
from ingestd.cli.rejected.selection import chosen, meant
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.rejected_export import every
from ingestd.daemon.status import observed
from ingestd.mirror.rejections import Selection


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@observing
@chosen
def show(selection: Selection, configuration: Configuration, form: str) -> None:
    """Tell all that is known of rejections: the record as it was, its place, the reason, every attempt.

    Exit codes: 0 shown, 1 nothing fits.
    """
    selection = meant(selection, everything=False)
    found = False
    with observed(configuration) as mirror:
        for rejection in every(mirror, selection):
            refusals = mirror.refusals(rejection.id)
            click.echo(as_json(rejection, refusals) if form == "json" else "\n".join(whole(rejection, refusals)))
            found = True
    if not found:
        click.echo("Nothing that is rejected fits that.", err=True)
        sys.exit(1)
