"""`ingestd why`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import click
import msgspec

from ingestd.cli.completion import FILE_OR_TABLE
from ingestd.cli.options import json_option, with_configuration_without_secrets
from ingestd.commands.why import printable
from ingestd.commands.why import why as ask_why
from ingestd.daemon.configuration import Configuration
from ingestd.process.redaction import redact
from ingestd.process.terminal_text import echo, safe_line, terminal_line


@click.command()
@click.argument("path", type=FILE_OR_TABLE)
@json_option("Print a JSON list with an object for each pipeline.")
@with_configuration_without_secrets
def why(configuration: Configuration, path: str, as_json: bool) -> None:
    """Show why a file waits, or what happened to it.

    PATH is a file in a folder or in its archive; the file may be gone. It can also be the name that a pipeline uses, such as
    'sub/run.csv' or the name of a table. The output has one line for each pipeline that knows PATH. If there are several lines,
    each line begins with the name of its pipeline.

    Exit codes: 0 found, 1 no pipeline knows PATH.

    Example: ingestd why drop/run-0042.csv
    """
    known = asyncio.run(ask_why(configuration, path, cwd=Path.cwd()))
    if as_json:
        echo(json.dumps(redact([msgspec.to_builtins(one) for one in known]), ensure_ascii=False, indent=2))
    else:
        for one in known:
            line = f"{one.pipeline}: {one.sentence}" if len(known) > 1 else one.sentence
            echo(safe_line(line))
    if not known:
        name = terminal_line(printable(path))
        echo(
            f"No pipeline of {configuration.path} knows '{name}': it is not in any of their folders, and never was.",
            err=True,
        )
    sys.exit(0 if known else 1)
