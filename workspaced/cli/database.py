"""Options and errors of the commands that use the database directly, not through a running service."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workspaced.cli.failure import UNAVAILABLE, UNUSABLE, Failure
from workspaced.core.clock import now_ms
from workspaced.core.problems import ConflictProblem, NotFoundProblem, UnavailableProblem
from workspaced.core.text import as_uuid
from workspaced.settings.environment import bucket_address
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.address import Address, address_of
from workspaced.storage.blobs.address import BucketAddress
from workspaced.storage.factory import transact
from workspaced.storage.port import StorageRefused, StorageUnusable, Transaction

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

DATABASE_URL = "WORKSPACED_DATABASE_URL"


def data_option(*, required: bool) -> Callable[[Command], Command]:
    """Add ``--data``, the data folder of the service."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        required=required,
        help="The service's data folder.",
    )


def database_option(command: Command) -> Command:
    """Add ``--database``, a URL. It is empty if neither the option nor the variable is set."""
    return click.option(
        "--database",
        envvar=DATABASE_URL,
        default="",
        show_envvar=True,
        metavar="URL",
        help="PostgreSQL instead of a SQLite file in the data folder: postgresql://user@host:5432/name; several hosts are "
        "separated by commas. Keep the password in PGPASSWORD or ~/.pgpass.",
    )(command)


def blobs_option(command: Command) -> Command:
    """Add ``--blobs``, the URL of a bucket. It is empty if neither the option nor the variable is set."""
    return click.option(
        "--blobs",
        envvar="WORKSPACED_BLOBS",
        default="",
        show_envvar=True,
        metavar="URL",
        help="S3 bucket for the bytes of files, instead of a folder in the data folder: s3://bucket/prefix. The variables "
        "WORKSPACED_BLOBS_… set the endpoint and credentials of the bucket.",
    )(command)


def selected_blobs(data: Path, url: str) -> Path | BucketAddress:
    """Return the store of the bytes of files: the bucket of the URL or, without a URL, the folder in the data folder.

    Raises:
        Failure: the URL or a variable is invalid.
    """
    try:
        bucket = bucket_address(url, os.environ) if url else None
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error
    return WorkspacedSettings(data=data, bucket=bucket).blobs


def address_option(command: Command) -> Command:
    """Add ``--data`` and ``--database``. The command gets both as one ``address``."""

    @functools.wraps(command)
    def addressed(*words: Any, data: Path | None, database: str, **more: Any) -> Any:
        return command(*words, address=selected_address(data, database), **more)

    return data_option(required=False)(database_option(addressed))  # type: ignore[return-value]  # the wrapper takes other options


def selected_address(data: Path | None, database: str) -> Address:
    """Return the address of the database that the options name.

    Raises:
        Failure: neither option is given, or the URL is invalid.
    """
    if data is None and not database:
        raise Failure("No database is given. Add --data FOLDER, or --database URL for PostgreSQL.", 2)
    try:
        return address_of(data or Path(), database)
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error


def configured_limits() -> Limits:
    """Return the limits of the service in this environment.

    Raises:
        Failure: a variable is not a whole number.
    """
    try:
        return Limits.from_environment(os.environ)
    except ValueError as error:
        raise Failure(str(error), UNUSABLE) from error


def with_failures(step: Callable[[], T]) -> T:
    """Run the step; return its result.

    Raises:
        Failure: the database can't be used at all, or can't be used now.
    """
    try:
        return step()
    except StorageUnusable as error:
        raise Failure(str(error), UNUSABLE) from error
    except StorageRefused as error:
        raise Failure(error.detail, UNUSABLE) from error
    except UnavailableProblem as error:
        raise Failure(error.detail, UNAVAILABLE) from error


def require_database(address: Address) -> None:
    """Check that there is a database, so that a command with a wrong data folder does not create an empty one.

    Raises:
        Failure: there is no SQLite file.
    """
    if not isinstance(address, Path):
        return
    try:
        address.stat()
    except FileNotFoundError as error:
        sentence = f"There is no database {address}. Give the data folder of a service that has run."
        raise Failure(sentence, UNUSABLE) from error
    except OSError:
        return  # reported when the file is opened


def in_transaction(address: Address, work: Callable[[Transaction], T], *, creates: bool = False) -> T:
    """Do the work in one transaction; return its result. ``creates``: also create a database that does not exist.

    Raises:
        Failure: the database can't be used at all, or can't be used now.
    """
    if not creates:
        require_database(address)
    return with_failures(lambda: transact(address, work))


def restored(address: Address, group: str, restore: Callable[[Transaction, int], object]) -> None:
    """Restore a deleted resource. ``restore`` gets the transaction and the time. ``group``: the command group with `list`.

    Raises:
        Failure: the resource is not deleted or can't be restored, or the database can't be used.
    """
    try:
        in_transaction(address, lambda tx: restore(tx, now_ms()))
    except (NotFoundProblem, ConflictProblem) as problem:
        sentence = f"{problem.detail} `workspaced {group} list --deleted` shows what can be restored."
        raise Failure(sentence, 1) from problem


def uuid_of(kind: str, text: str) -> str:
    """Return an id in lower case; ``kind`` is what the id identifies.

    Raises:
        Failure: the text is not a UUID.
    """
    found = as_uuid(text)
    if found is None:
        raise Failure(
            f"'{text}' is not the id of a {kind}: it must be a UUID. `workspaced {kind}s list` shows the ids.", 2
        )
    return found
