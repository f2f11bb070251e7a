"""What the commands share that work on the database themselves, whether the service is running or not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspaced.cli.failure import AWAY, UNUSABLE, Failure
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import Address, address_of
from workspaced.storage.factory import transact
from workspaced.storage.port import PasswordRefused, StorageUnusable, Transaction

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

DATABASE_URL = "WORKSPACED_DATABASE_URL"


def data_option(command: Command) -> Command:
    """``--data``, the folder of the service."""
    return click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The service's data folder.")(
        command
    )


def database_option(command: Command) -> Command:
    """``--database``, a URL; empty where neither it nor the variable is given."""
    return click.option(
        "--database",
        envvar=DATABASE_URL,
        default="",
        show_envvar=True,
        metavar="URL",
        help="PostgreSQL instead of a SQLite file in the data folder: postgresql://user@host:5432/name. A password is "
        "better kept in PGPASSWORD or ~/.pgpass.",
    )(command)


def address_option(command: Command) -> Command:
    """Both options, handed to the command as one ``address``."""

    @functools.wraps(command)
    def addressed(*words: Any, data: Path | None, database: str, **more: Any) -> Any:
        return command(*words, address=chosen(data, database), **more)

    return data_option(database_option(addressed))  # type: ignore[return-value]  # the options are taken off it


def chosen(data: Path | None, database: str) -> Address:
    """The database that the options name.

    Raises:
        Failure: neither is given, or the URL is no good.
    """
    if data is None and not database:
        raise Failure("Say where the data is: --data FOLDER, or --database URL for PostgreSQL.", 2)
    try:
        return address_of(data or Path(), database)
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error


def done(step: Callable[[], T]) -> T:
    """What the step returns.

    Raises:
        Failure: the database can't be used, or not now.
    """
    try:
        return step()
    except StorageUnusable as error:
        raise Failure(str(error), UNUSABLE) from error
    except PasswordRefused as error:
        raise Failure(error.detail, UNUSABLE) from error
    except UnavailableProblem as error:
        raise Failure(error.detail, AWAY) from error


def in_transaction(address: Address, work: Callable[[Transaction], T]) -> T:
    """Do it in that database.

    Raises:
        Failure: it can't be done.
    """
    return done(lambda: transact(address, work))
