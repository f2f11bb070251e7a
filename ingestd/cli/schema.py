"""`ingestd schema`."""

from __future__ import annotations

import click

from ingestd.process.terminal_text import echo
from ingestd.registry import connector_class, connector_names
from ingestd.settings.schema import schema_text


@click.command()
def schema() -> None:
    """Print the JSON Schema of the configuration.

    Editors use it to complete and check YAML.

    Example: ingestd schema > ingestd.schema.json
    """
    echo(schema_text({name: connector_class(name) for name in connector_names()}), nl=False)
