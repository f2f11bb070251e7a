"""`ingestd trace`."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from ingestd.cli.location import format_location
from ingestd.cli.options import with_configuration_without_secrets
from ingestd.core.clock import moment
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.status import read_origins
from ingestd.mirror.port import EntryOrigin


@click.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with an object for each sink.")
@with_configuration_without_secrets
def trace(configuration: Configuration, key: str, as_json: bool) -> None:
    """Show the source of the value of a KEY: file or table, row, and time of reading.

    Exit codes: 0 found, 1 no sink should contain the key.
    """
    origins = read_origins(configuration, key)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(origin) for origin in origins], ensure_ascii=False, indent=2))
    elif not origins:
        click.echo(f"No sink should contain '{key}'. Keys are case-sensitive.", err=True)
    for origin in () if as_json else origins:
        click.echo("\n".join(_lines(origin)))
    sys.exit(0 if origins else 1)


def _lines(origin: EntryOrigin) -> list[str]:
    value = "to be removed" if origin.removed else f"= {origin.value} ({origin.data_type})"
    state = "pending" if origin.pending else "delivered"
    lines = [f"{origin.key} {value}", f"  sink      {origin.sink} in {origin.workspace}, {state}"]
    if not origin.pipeline:
        return [*lines, "  found in the service; no source has named it"]
    lines.append(f"  pipeline  {origin.pipeline}")
    lines.append(f"  source    {format_location(origin.partition, origin.position)}")
    if origin.read_at is not None:
        lines.append(f"  read      {moment(origin.read_at)}")
    return [*lines, *(f"  {name:<9} {text}" for name, text in origin.facts.items())]
