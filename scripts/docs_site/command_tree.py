"""All commands of a command-line program, with their full names."""

from __future__ import annotations

from collections.abc import Iterator

import click


def iter_commands(
    command: click.Command, name: str, *, parent: click.Context | None = None
) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield a command and its visible subcommands, each with a context. ``command_path`` of the context is the full name."""
    ctx = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield command, ctx
    if isinstance(command, click.Group):
        for one in command.list_commands(ctx):
            child = command.get_command(ctx, one)
            if child is not None and not child.hidden:
                yield from iter_commands(child, one, parent=ctx)
