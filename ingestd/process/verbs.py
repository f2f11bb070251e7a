"""A command line with a module for each verb. Only the module of the used verb is imported, so a command starts fast."""

from __future__ import annotations

import errno
import importlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import click

from ingestd.process.cycle_collection import begin_program, paused
from ingestd.process.deferred_imports import defer_imports
from ingestd.process.standard_streams import open_standard_streams, output_failure
from ingestd.process.utf8_mode import require_utf8_mode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMPARED = 300
"""The maximum number of characters of an unknown verb that are compared with the verbs."""

OUTPUT_UNWRITABLE = 73
"""EX_CANTCREAT: the output of the command could not be written. The command may have done its work."""


class Verbs(click.Group):
    """A group of commands. The command of a verb has the verb's name, in a module of the same name below ``package``."""

    verbs: ClassVar[Mapping[str, str]]
    """The first line of each verb's help, so that a list of verbs imports no module. New users need the verbs in this order."""
    package: ClassVar[str]
    deferred: ClassVar[Sequence[str]] = ()
    """Libraries with deferred imports (`defer_imports`)."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """By verb of other programs: the equivalent verb of this program, which the error about an unknown verb suggests."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a program, which ends afterwards. Tests call `main` instead, because their process continues."""
        require_utf8_mode()
        begin_program()
        return super().__call__(*args, **kwargs)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as click, after `open_standard_streams`."""
        open_standard_streams()
        return super().main(*args, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Do the same as click, which here prints the help and the version. Report a failed output as `invoke` does."""
        with _reported_output():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb. If standard output is closed or full, report that without a traceback."""
        with _reported_output():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs."""
        return list(self.verbs)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of verbs."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.verbs.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete an option, or a verb without importing it."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell needs it

        found = [CompletionItem(verb, help=line) for verb, line in self.verbs.items() if verb.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command of a verb; None for an unknown verb, which click then reports."""
        if cmd_name not in self.verbs:
            return None
        defer_imports(*self.deferred)
        name = cmd_name.replace("-", "_")
        with paused():
            command: click.Command = getattr(importlib.import_module(f"{self.package}.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do the same as click. The error about an unknown verb suggests the most similar verb."""
        word = args[0]
        if word in self.verbs or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        near = self.elsewhere.get(word) or next(iter(get_close_matches(word[:_COMPARED], self.verbs, n=1)), "")
        hint = f" Did you mean '{near}'?" if near else ""
        raise click.UsageError(f"There is no command '{word}'.{hint}", ctx=ctx)


@contextmanager
def _reported_output() -> Iterator[None]:
    """End with a sentence and an exit code if standard output can't be written.

    If the reader has ended (``| head -1``), nothing is reported; the exit code is the same as after SIGPIPE.
    """
    try:
        yield
    except OSError:
        failure = output_failure()
        if failure is None:
            raise
        if failure.errno == errno.EPIPE:
            raise click.exceptions.Exit(128 + signal.SIGPIPE) from None
        click.echo(f"Standard output cannot be written: {failure.strerror or failure}.", err=True)
        raise click.exceptions.Exit(OUTPUT_UNWRITABLE) from None
