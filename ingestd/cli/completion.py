"""Types of arguments that a shell completes: names of pipelines, and texts that may be files, patterns or tables."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from ingestd.core.errors import ConfigurationError
from ingestd.settings.configuration_file import find_configuration, read_pipeline_names


class _PipelineName(StringParamType):
    """A text that is completed from the configuration of ``-c``, or of a default path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """Return the unused names that begin with ``incomplete``; no names if the configuration can't be read."""
        explicit = ctx.params.get("config") or ctx.find_root().params.get("config")
        try:
            names = read_pipeline_names(find_configuration(explicit, os.environ, Path.cwd()))
        except ConfigurationError:
            return []
        given = ctx.params.get("pipelines") or ()
        return [CompletionItem(name) for name in names if name.startswith(incomplete) and name not in given]


class _FileOrTable(StringParamType):
    """A text that is completed as a file. It may be a pattern, or the name of a table."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """Have the shell complete a file."""
        return [CompletionItem(incomplete, type="file")]


PIPELINE = _PipelineName()
FILE_OR_TABLE = _FileOrTable()
