"""The remote connector: a listing selects files, and acknowledged files are kept, archived or deleted on the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import ClassVar

from connectors.directory.checks import describe_scan
from connectors.directory.file_source import FileSource
from connectors.files.file_batches import read_batches
from connectors.files.identity import Identity
from connectors.remote.disposer import RemoteDisposer, RemotePlaces
from connectors.remote.folder import RemoteDropFile, RemoteFolder
from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteStore, find_name_fault
from ingestd.sdk import (
    Acknowledgement,
    Batch,
    Cursor,
    FileClaim,
    Partition,
    SourceBroken,
    SourceContext,
    SourceError,
    Step,
)


class RemoteConnector(FileSource):
    """Files in a folder of a server or in a bucket.

    Files that were read are recognised by name and identity. So a file that appears late, or has an old time, is read.
    """

    Options: ClassVar[type[RemoteOptions]] = RemoteOptions
    options: RemoteOptions

    def __init__(self, options: RemoteOptions, context: SourceContext) -> None:
        super().__init__(options, context, self._open_places, trusts_status=False)

    def _open_places(self) -> tuple[RemoteFolder, RemoteDisposer]:
        options = self.options
        self._store: RemoteStore = _open_store(options, self.context.base)
        places = RemotePlaces(options)
        self._drop = RemoteFolder(options, self._store, excluded=places.all, other_readers=self.context.other_readers)
        self._remote = RemoteDisposer(options, places, self._drop, format_for=self._format_of_rejected)
        return self._drop, self._remote

    @classmethod
    def claims(cls, options: RemoteOptions, base: Path) -> Sequence[FileClaim]:  # noqa: ARG003 - the files are not below it
        """Return the claim on the matching files of the server. Its folder is an address, not a path on disk."""
        address = options.address
        return [
            FileClaim(
                folder=address.display(address.folder),
                patterns=options.patterns,
                recursive=options.recursive,
                ignore_case=not options.case_sensitive,
                takes=options.after != "keep",
                excluded=tuple(address.display(folder) for folder in RemotePlaces(options).all),
            )
        ]

    def acknowledge_together(
        self, partitions: Sequence[tuple[Partition, Cursor, Acknowledgement]]
    ) -> list[Exception | None]:
        """Keep, archive or delete files, also after `interrupt`; see `FileSource.acknowledge_together`."""
        self._store.allow()
        return super().acknowledge_together(partitions)

    def read_copy(self, name: str, facts: Mapping[str, str]) -> Iterator[Batch]:
        """Yield the archived file with the size and hash in ``facts``, for `ingestd trace`; nothing if none is found."""
        size, sha256 = facts.get("file.size"), facts.get("file.sha256")
        if size is None or sha256 is None or find_name_fault(name):
            return
        for path in self._remote.find_archived(name, int(size), sha256):
            opened = self._drop.open(path, name)
            with opened.file:
                yield from read_batches(opened, sha256, self._format_for(name), notices=self._notices)
            return

    def holds(self, name: str) -> bool:
        """Return True if there is a file of this name in the folder."""
        self._drop.check()
        return self._drop.kind(name) == "file"

    # ------------------------------------------------------------------------------------------------ watching

    @property
    def rescan_seconds(self) -> float:
        """The interval of the listings, in seconds."""
        return self.options.poll_seconds

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:  # noqa: ARG002 - no server reports changes
        """Return a context that does nothing: the folder is listed periodically."""
        return nullcontext()

    # ----------------------------------------------------------------------------------------------- reporting

    def verify(self) -> Iterator[Step]:
        """Check whether the server can be used as configured, and what the folder holds."""
        name = "server"
        try:
            yield Step(name=name, outcome="passed", sentence=self._store.steps())
            name = "folder"
            self._drop.check()
            found = self._drop.scan()
        except SourceError as error:
            yield Step(name=name, outcome="failed", sentence=str(error))
            return
        yield Step(name=name, outcome="passed", sentence=f"{self._drop.shown('')} can be listed.")
        if self.options.after == "keep":
            yield Step(name="moving files", outcome="skipped", sentence="Files stay where they are (after: keep).")
        else:
            sentence = (
                "A check changes nothing, so it can't test whether files can be moved or deleted. The first"
                " acknowledged file shows it."
            )
            yield Step(name="moving files", outcome="skipped", sentence=sentence)
        yield from describe_scan(found, self.options)

    def locate(self, path: Path) -> str | None:  # noqa: ARG002 - remote files have no path on this machine
        """Return None: no path on this machine belongs to a remote file."""
        return None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return the end of a sentence that says where the file of ``cursor`` is now."""
        folder = self._drop.shown("")
        try:
            identity: Identity | None = RemoteDropFile(self._drop, name).status()
        except FileNotFoundError:
            identity = None
        if identity is not None and identity.matches_cursor(cursor):
            return f"it stays in {folder}" if self.options.after == "keep" else f"it is still in {folder}"
        size, sha256 = cursor.get("size"), cursor.get("sha256")
        if isinstance(size, int) and isinstance(sha256, str):
            for path in self._remote.find_archived(name, size, sha256):
                return f"it was archived as {self.options.address.display(path)}"
        if identity is not None:
            return "it was replaced by a file with other content"
        return "it was deleted" if self.options.after == "delete" else f"it is not in {folder} any more"

    def resume(self) -> None:
        """Have the next pass connect again after an unknown host key or a refused user."""
        self._store.resume()

    def reset(self) -> None:
        """Have the next pass read everything and try a refused log-in again, because an operator requested it."""
        super().reset()
        self._store.resume()

    def interrupt(self) -> None:
        """End a running request, and the child process that parses a file."""
        self._store.interrupt()
        super().interrupt()

    def close(self) -> None:
        """Close the connection, and stop the child process that parses a file."""
        super().close()
        self._store.close()


def _open_store(options: RemoteOptions, base: Path) -> RemoteStore:
    """Return the store of ``options``, not yet connected. The package that it needs is optional, so the import is here."""
    if options.address.scheme == "sftp":
        try:
            from connectors.remote.sftp import SftpStore  # noqa: PLC0415
        except ImportError as error:
            raise SourceBroken(f"SFTP needs asyncssh: install ingestd[sftp] ({error}).") from error
        return SftpStore(options, base)
    try:
        from connectors.remote.object_store import ObjectStore  # noqa: PLC0415
    except ImportError as error:
        raise SourceBroken(f"{options.address.scheme}:// needs obstore: install ingestd[objects] ({error}).") from error
    return ObjectStore(options, base)
