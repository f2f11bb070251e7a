"""A person decides what is not proven: by an option, by a response on a terminal, or by `--yes`."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from ingestd.cli.dialogue import Dialogue

DOUBT = "The header may be in row 1 or 3."


def dialogue(*, interactive: bool = False, accepts: bool = False, given: str | None = None) -> Dialogue:
    return Dialogue(interactive=interactive, accepts=accepts, options={"--header-row": given})


def test_a_given_option_decides_without_a_question() -> None:
    assert dialogue(interactive=True, given="7").decide("--header-row", DOUBT, "3") == "7"


@pytest.mark.parametrize(("typed", "expected"), [("1\n", "1"), ("\n", "3")])
def test_a_terminal_shows_the_doubt_and_asks_with_the_proposal_as_default(typed: str, expected: str) -> None:
    with CliRunner().isolation(input=typed) as (_, errors, _):
        assert dialogue(interactive=True).decide("--header-row", DOUBT, "3") == expected
        assert errors is not None
        assert f"{DOUBT}\nValue of --header-row [3]: " in errors.getvalue().decode()


def test_a_response_that_is_none_of_the_choices_is_asked_for_again() -> None:
    with CliRunner().isolation(input="y\nboth\nno\n") as (_, errors, _):
        found = dialogue(interactive=True).decide("--units-row", DOUBT, "yes", choices=("yes", "no"))
        assert found == "no"
        assert errors is not None
        screen = errors.getvalue().decode()
        assert screen.count("Value of --units-row [yes]: ") == 3
        assert "'both' is not one of 'yes', 'no'." in screen


def test_a_value_that_is_none_of_the_choices_is_asked_for_again() -> None:
    with CliRunner().isolation(input="Mars\nRover\n") as (_, errors, _):
        assert dialogue(interactive=True).value("--workspace", "Workspace", choices=("Rover", "w-1")) == "Rover"
        assert errors is not None
        assert "'Mars' is not one of 'Rover', 'w-1'." in errors.getvalue().decode()
    assert dialogue(given="7").value("--header-row", "Row", choices=("1",)) == "7"


def test_yes_takes_the_proposal_and_says_so() -> None:
    with CliRunner().isolation() as (_, errors, _):
        assert dialogue(accepts=True).decide("--header-row", DOUBT, "3") == "3"
        assert errors is not None
        assert errors.getvalue().decode() == f"{DOUBT} Taken: 3 (--yes).\n"


def test_without_a_terminal_the_option_is_named_and_nothing_is_taken() -> None:
    with pytest.raises(click.UsageError, match="Name the right value with --header-row, or accept '3' with --yes"):
        dialogue().decide("--header-row", DOUBT, "3")
    with pytest.raises(click.UsageError, match=r"Name the right value with --header-row\.$"):
        dialogue(accepts=True).decide("--header-row", DOUBT, "")
