"""All commands of a command line with their names, for the man page and the completion."""

from __future__ import annotations

from collections.abc import Iterator

import click


def iter_commands(command: click.Command, ctx: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield a command and the visible ones below it, each with a context; its ``command_path`` is the full name."""
    yield command, ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None and not child.hidden:
                yield from iter_commands(child, click.Context(child, info_name=name, parent=ctx))
