"""`ingestd rejected show`."""

from __future__ import annotations

import sys

import click

from ingestd.cli.line_output import echo_lines
from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.cli.rejected.presentation import format_details, to_json
from ingestd.cli.rejected.selection import require_explicit, with_selection
from ingestd.commands.rejected_export import iter_rejections
from ingestd.commands.status import observe
from ingestd.daemon.configuration import Configuration
from ingestd.mirror.rejections import Rejection, Selection
from ingestd.process.terminal_text import echo, terminal_line


@click.command()
@json_option("Print a JSON object a rejection, one a line.")
@with_configuration_without_secrets
@with_selection
def show(selection: Selection, configuration: Configuration, as_json: bool) -> None:
    """Show rejections with all details: the record, its location, the reason, and every attempt.

    Exit codes: 0 shown, 1 no rejection matches.

    Example: ingestd rejected show 17
    """
    selection = require_explicit(selection, everything=False)
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
