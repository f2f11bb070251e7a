"""Folders on servers that look like folders on disk, so that tests of the directory connector run with remote sources.

The SFTP server shows the folder on disk. The content of a bucket is replaced by that of the folder before each call of the
connector, and the folder's content by that of the bucket afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore

from connectors.remote import RemoteConnector, RemoteOptions
from ingestd.sdk import Acknowledgement, Batch, Cursor, LoadSections, Partition, SourceContext
from tests.support.file_flow import FileFlow
from tests.support.object_server import ObjectServer
from tests.support.sftp_server import SftpServer

_FOLDERS = ("archive", "receipts", "quarantine", "failed")
_LOCAL_ONLY = ("path", "watch", "rescan_seconds")


def remote_options(server: SftpServer | ObjectServer, base: Path, options: dict[str, Any]) -> RemoteOptions:
    """Return the options of a source that reads a folder on a server. ``options``: those for the same folder on disk."""
    own = {name: value for name, value in options.items() if name not in _LOCAL_ONLY}
    root = str(base) if isinstance(server, SftpServer) else ""
    own |= {name: f"{root}/{own[name]}" for name in _FOLDERS if own.get(name) is not None}
    if isinstance(server, SftpServer):
        url = f"sftp://{server.user}@127.0.0.1:{server.port}{base}/{options['path']}"
        return RemoteOptions.model_validate(server.options("", **own) | {"url": url})
    return RemoteOptions.model_validate(server.options(options["path"], **own))


def open_remote(server: SftpServer | ObjectServer, base: Path, options: dict[str, Any], context: SourceContext) -> Any:
    """Return a connector that reads a folder below ``base`` on a server; ``options`` as for the folder on disk."""
    settings = remote_options(server, base, options)
    if isinstance(server, SftpServer):
        return RemoteConnector(settings, context)
    return BucketConnector(settings, context, server, base)


class BucketConnector(RemoteConnector):
    """A connector of a bucket that is kept equal to the folder ``base``."""

    def __init__(self, options: RemoteOptions, context: SourceContext, server: ObjectServer, base: Path) -> None:
        super().__init__(options, context)
        self._server = server
        self._base = base

    @contextmanager
    def _equal(self) -> Iterator[None]:
        self._push()
        try:
            yield
        finally:
            self._pull()

    def _push(self) -> None:
        known = self._server.equal
        here = {
            str(path.relative_to(self._base)): path
            for path in self._base.rglob("*")
            if path.is_file() and len(path.relative_to(self._base).parts) > 1
        }
        for name, path in here.items():
            if known.get(name) != _stamp(path):
                self._server.put(name, path.read_bytes())
                known[name] = _stamp(path)
        for name in known.keys() - here.keys():
            obstore.delete(self._server.store, name)
            del known[name]

    def _pull(self) -> None:
        known = self._server.equal
        there = set(self._server.paths())
        for name in known.keys() - there:
            (self._base / name).unlink()
            del known[name]
        for name in there:
            path = self._base / name
            content = self._server.get(name)
            if name not in known or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                known[name] = _stamp(path)

    def partitions(self) -> Iterable[Partition]:
        with self._equal():
            yield from super().partitions()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        with self._equal():
            yield from super().read(partition, cursor)

    def read_sections(self, partition: Partition, cursor: Cursor | None, known: LoadSections) -> Iterator[Batch]:
        with self._equal():
            yield from super().read_sections(partition, cursor, known)

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        with self._equal():
            super().acknowledge(partition, cursor, acknowledgement)

    def acknowledge_together(
        self, partitions: Sequence[tuple[Partition, Cursor, Acknowledgement]]
    ) -> list[Exception | None]:
        with self._equal():
            return super().acknowledge_together(partitions)

    def failed(self, partition: Partition, reason: str) -> None:
        with self._equal():
            super().failed(partition, reason)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        with self._equal():
            return super().explain(name, cursor)

    def describe_location(self, name: str, cursor: Cursor) -> str:
        with self._equal():
            return super().describe_location(name, cursor)


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def replace_later(path: Path, write: Callable[[], object]) -> Path:
    """Write a file. If it exists, set its time to one second after the previous time, because SFTP has whole seconds."""
    before = path.stat().st_mtime_ns if path.exists() else None
    write()
    if before is not None:
        os.utime(path, ns=(before + 10**9, before + 10**9))
    return path


class RemoteFlow(FileFlow):
    """A pipeline that reads ``base/drop`` on a server."""

    def __init__(self, base: Path, server: SftpServer | ObjectServer, **more: Any) -> None:
        self._server = server
        super().__init__(base, **more)

    def write(self, name: str, content: str | bytes, encoding: str = "utf-8") -> Path:
        return replace_later(self.drop / name, lambda: super(RemoteFlow, self).write(name, content, encoding))

    def connect(self, context: SourceContext) -> Any:
        return open_remote(self._server, self.base, self.options, context)
