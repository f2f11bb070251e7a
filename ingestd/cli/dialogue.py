"""The dialogue of a command with a person.

A value comes from an option, else from a question on a terminal, else from a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import msgspec

from ingestd.process.terminal_text import echo


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """Returns values from options, from a person, or from defaults. ``options``: the values of the options.

    ``interactive``: a person can be asked. ``accepts``: unproven proposals are accepted.
    """

    interactive: bool
    accepts: bool
    options: Mapping[str, str | None]

    def given(self, option: str) -> str | None:
        """Return the value of an option; None if it was not given."""
        return self.options.get(option)

    def value(self, option: str, question: str, *, default: str | None = None, choices: Sequence[str] = ()) -> str:
        """Return the value of an option, the text that a person types, or the default. ``choices``: see `decide`.

        Raises:
            click.UsageError: there is no value, and no person can be asked.
        """
        if (given := self.given(option)) is not None:
            return given
        if self.interactive:
            return _typed(question, default, choices)
        if default is None:
            raise click.UsageError(f"Without questions, {option} is needed.")
        return default

    def decide(self, option: str, doubt: str, proposal: str, *, choices: Sequence[str] = ()) -> str:
        """Return a value that the sample does not prove. ``doubt``: the reason, as a sentence. ``proposal``: may be empty.

        ``choices``: a person is asked again until they type one of the choices; empty: any text.

        Raises:
            click.UsageError: no person can be asked, and the proposal was not accepted by ``--yes``.
        """
        if (given := self.given(option)) is not None:
            return given
        if self.interactive:
            echo(doubt, err=True)
            return _typed(f"Value of {option}", proposal or None, choices)
        if not proposal:
            raise click.UsageError(f"{doubt} Name the right value with {option}.")
        if not self.accepts:
            raise click.UsageError(f"{doubt} Name the right value with {option}, or accept '{proposal}' with --yes.")
        echo(f"{doubt} Taken: {proposal} (--yes).", err=True)
        return proposal

    def secret(self, question: str, *, default: str | None = None) -> str:
        """Ask for a text that is not shown."""
        return str(click.prompt(question, default=default, show_default=False, hide_input=True, err=True))


def _typed(question: str, default: str | None, choices: Sequence[str]) -> str:
    kind = click.Choice(choices) if choices else None
    return str(click.prompt(question, default=default, type=kind, show_choices=False, err=True))
