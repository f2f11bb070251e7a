"""Errors of commands: each has a sentence, and an exit code from sysexits(3)."""

from __future__ import annotations

from typing import IO, Any

import click

from ingestd.process.terminal_text import terminal_line

UNUSABLE = 78
"""EX_CONFIG: a new start would fail, too, until an operator corrects the cause."""

UNAVAILABLE = 69
"""EX_UNAVAILABLE: a later start may succeed."""


class Failure(click.ClickException):
    """Ends the command with a sentence on standard error and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence after the program's name, instead of click's "Error: "."""
        click.echo(f"workspaced: {terminal_line(self.format_message())}", file=file, err=file is None)
