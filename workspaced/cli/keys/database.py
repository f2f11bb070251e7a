"""What the verbs on keys share: the data folder, one transaction on it, and the choice of a key by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspaced.access import store
from workspaced.cli.failure import AWAY, UNUSABLE, Failure
from workspaced.problems import Unavailable
from workspaced.settings import Settings
from workspaced.storage.port import Reader, StorageUnusable, Transaction
from workspaced.storage.sqlite_store import transact

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


def data_option(command: Command) -> Command:
    """``--data``, the folder of the service."""
    return click.option(
        "--data", type=click.Path(path_type=Path, file_okay=False), required=True, help="The service's data folder."
    )(command)


def in_transaction(data: Path, work: Callable[[Transaction], T]) -> T:
    """Do it in the database of that folder, whether the service is running or not.

    Raises:
        Failure: it can't be done.
    """
    try:
        return transact(Settings(data=data).database, work)
    except StorageUnusable as error:
        raise Failure(str(error), UNUSABLE) from error
    except Unavailable as error:
        raise Failure(error.detail, AWAY) from error


def the_key(reader: Reader, name: str) -> str:
    """The id of the one key with this id or name.

    Raises:
        Failure: there is none, or several.
    """
    found = store.keys_named(reader, name)
    if not found:
        raise Failure(f"There is no key '{name}' that is not revoked; `workspaced keys list` shows all.", 1)
    if len(found) > 1:
        raise Failure(f"Several keys are named '{name}': {', '.join(found)}. Say which by its id.", 1)
    return found[0]
