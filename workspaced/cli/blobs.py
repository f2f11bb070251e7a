"""``workspaced blobs``: copy the bytes of files to another store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import (
    blobs_option,
    data_option,
    database_option,
    require_database,
    selected_address,
    selected_blobs,
    with_failures,
)
from workspaced.cli.failure import Failure
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.address import Address
from workspaced.storage.blobs.address import SCHEME, BucketAddress
from workspaced.storage.blobs.copy import BlobCopy
from workspaced.storage.blobs.factory import create_blob_store
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.received_bytes import IncomingFolder


@click.group()
def blobs() -> None:
    """The bytes of files: copy them to another folder or bucket."""


@blobs.command()
@click.argument("target")
@data_option(required=True)
@database_option
@blobs_option
@click.option("--switch", is_flag=True, help="After the copy, make TARGET the store of the database.")
def copy(target: str, data: Path, database: str, blobs: str, *, switch: bool) -> None:
    """Copy the bytes of all files to TARGET, a bucket (s3://bucket/prefix) or a folder, while the service runs or not.

    The source is the bucket of --blobs; without --blobs, the folder in --data. Bytes that TARGET has already are not copied
    again, so the same command continues an interrupted copy. All copied bytes are compared with their SHA-256.

    With --switch, hosts that run with the former store accept no more uploads, and can't be started with this store again. Stop
    these hosts, and start all hosts with TARGET: `workspaced serve --blobs s3://bucket/prefix`, or without --blobs for the
    folder blobs in --data. Bytes in the former store stay there.
    """
    address = selected_address(data, database)
    require_database(address)
    source = selected_blobs(data, blobs)
    into = selected_blobs(data, target) if target.startswith(SCHEME) else Path(target)
    if source == into:
        raise Failure(f"{into} is the source itself. Name another folder or bucket.", 2)
    copied, present = with_failures(lambda: asyncio.run(_copy(address, source, into, data, switch=switch)))
    echo(f"{into} has all bytes: {copied} copied, {present} were there already.")
    if switch:
        echo(f"It is now the store of {address}. Start all hosts with it.")


async def _copy(
    address: Address, source: Path | BucketAddress, into: Path | BucketAddress, data: Path, *, switch: bool
) -> tuple[int, int]:
    threads = FileThreads()
    # Received files are moved into the target folder, so they must be received on the file system of this folder.
    folder = into if isinstance(into, Path) else WorkspacedSettings(data=data).blob_folder
    incoming = IncomingFolder(folder / "incoming", threads)
    try:
        await incoming.start()
        await incoming.drop_abandoned()  # files of a copy that was killed
        moving = BlobCopy(address, create_blob_store(source, threads), create_blob_store(into, threads), incoming)
        counts = await moving.run(_report)
        if switch:
            await moving.switch(_report)
        return counts
    finally:
        await threads.stop()


def _report(copied: int, present: int) -> None:
    echo(f"{copied} copied, {present} were there …", err=True)
