"""The command line of the service. Each verb has a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from ingestd.process.verbs import Verbs
from workspaced import __version__
from workspaced.cli.failure import UNUSABLE, Failure


class ServiceVerbs(Verbs):
    """The verbs of `workspaced`."""

    verbs: ClassVar[Mapping[str, str]] = {
        "serve": "Serve until SIGTERM or Ctrl-C.",
        "keys": "API keys: create, list, rotate, revoke.",
        "workspaces": "Workspaces: create, list, restore.",
        "files": "Files: list, restore.",
        "migrate": "Migrate the database to the schema of this program.",
        "blobs": "The bytes of files: copy them to another folder or bucket.",
        "backup": "Copy all data into the new FOLDER, while the service runs or not.",
        "openapi": "Print the OpenAPI 3.1 document of a service.",
    }
    package: ClassVar[str] = __name__
    elsewhere: ClassVar[Mapping[str, str]] = {"run": "serve", "start": "serve"}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb, or None if there is no such verb.

        Raises:
            Failure: `ingestd` is installed without the packages of the service.
        """
        try:
            return super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in {"ingestd", "workspaced"}:
                raise
            sentence = f"The service needs {error.name}, which is not installed. Run: pip install 'ingestd[workspaced]'"
            raise Failure(sentence, UNUSABLE) from error


@click.group(
    cls=ServiceVerbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "WORKSPACED"}
)
@click.version_option(__version__, prog_name="workspaced")
def main() -> None:
    """The workspace service: workspaces, data sinks, and the keys to them."""


__all__ = ["main"]
