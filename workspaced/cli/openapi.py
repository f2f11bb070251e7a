"""``workspaced openapi``: print the OpenAPI document."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ingestd.process.terminal_text import echo
from workspaced.app import create_app
from workspaced.cli.failure import UNUSABLE, Failure
from workspaced.http.openapi.routes import text_of
from workspaced.settings.environment import settings_from


@click.command()
def openapi() -> None:
    """Print the OpenAPI 3.1 document of a service that runs with the current environment variables."""
    try:
        settings = settings_from(os.environ, data=Path())
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error
    echo(text_of(create_app(settings).publication.document), nl=False)
