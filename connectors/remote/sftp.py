"""The store for an SFTP server. It keeps one connection open between calls, and reconnects after a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar, cast

import asyncssh

from connectors.files.identity import Identity
from connectors.remote.address import join
from connectors.remote.options import RemoteOptions
from connectors.remote.request_loop import RequestLoop
from connectors.remote.sftp_login import SftpLogin, describe_ssh_error
from connectors.remote.store import RemoteChanged, RemoteEntry, RemoteStore, find_name_fault
from ingestd.sdk import SourceBroken, SourceUnavailable, note_progress

T = TypeVar("T")

_BLOCK_BYTES = 2**20
_MOST_FOLDERS = 100_000
_DEEPEST = 64
_GONE = (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath)
_LOST = (
    asyncssh.SFTPConnectionLost,
    asyncssh.SFTPNoConnection,
    asyncssh.DisconnectError,
    ConnectionError,
    TimeoutError,
)


class SftpStore(RemoteStore):
    """Reads, moves and writes files of an SFTP server."""

    copies = False

    def __init__(self, options: RemoteOptions, base: Path) -> None:
        super().__init__(options.address, RequestLoop("sftp", ignored=_LOST))
        self._login = SftpLogin(options, base)
        self._timeout = options.timeout_seconds
        self._is_silent = False
        self._connection: asyncssh.SSHClientConnection | None = None
        self._client: asyncssh.SFTPClient | None = None

    def check(self, path: str) -> None:
        """See `RemoteStore.check`."""

        async def work(client: asyncssh.SFTPClient) -> None:
            attrs = await self._timed(client.stat(_coded(path)))
            if not stat.S_ISDIR(attrs.permissions or 0):
                raise SourceUnavailable(f"{self._shown(path)} is not a folder: correct url.")

        try:
            self._run(work, path, repeat=True)
        except FileNotFoundError:
            raise SourceUnavailable(f"{self._shown(path)} does not exist. Create or mount it there.") from None

    def list_files(self, folder: str, take: Callable[[RemoteEntry], None], enters: Callable[[str], bool]) -> None:
        """See `RemoteStore.list_files`. Links are reported with a fault, and never followed."""

        async def work(client: asyncssh.SFTPClient) -> None:
            below: list[str] = []
            await self._list_one(client, folder, "", take, below)
            listed = 0
            while below:
                name = below.pop()
                if not enters(name):
                    continue
                listed += 1
                if listed > _MOST_FOLDERS:
                    raise SourceBroken(f"{self._shown(folder)} has more than {_MOST_FOLDERS} sub-folders.")
                try:
                    await self._list_one(client, join(folder, name), f"{name}/", take, below)
                except _GONE:
                    continue  # removed after its parent was listed

        self.check(folder)  # connects again if the idle connection was lost, because the listing is not repeated
        try:
            self._run(work, folder)
        except FileNotFoundError:
            raise SourceUnavailable(f"{self._shown(folder)} does not exist. Create or mount it there.") from None

    async def _list_one(
        self,
        client: asyncssh.SFTPClient,
        path: str,
        prefix: str,
        take: Callable[[RemoteEntry], None],
        below: list[str],
    ) -> None:
        entries = client.scandir(_coded(path))
        while True:
            try:
                entry = await self._timed(anext(entries))
            except StopAsyncIteration:
                return
            raw = entry.filename
            base = raw if isinstance(raw, str) else raw.decode("utf-8", "backslashreplace")
            if base in {".", ".."}:
                continue
            name, mode = prefix + base, entry.attrs.permissions or 0
            fault = "its name is not UTF-8; rename it" if _coded(base) != raw else find_name_fault(name)
            if "/" in base:
                fault = "its name has a slash"
            if stat.S_ISLNK(mode):
                fault = fault or "it is a link, and links of a server are not followed"
            elif stat.S_ISDIR(mode):
                if not fault and name.count("/") < _DEEPEST:
                    below.append(name)
                continue
            elif not stat.S_ISREG(mode):
                continue
            take(RemoteEntry(name, _identity(entry.attrs), fault))

    def status(self, path: str) -> Identity:
        """See `RemoteStore.status`."""
        return self._run(lambda client: self._status(client, path), path, repeat=True)

    def fetch(
        self, path: str, target: BinaryIO, *, expected: Identity | None = None, most: int | None = None
    ) -> Identity:
        """See `RemoteStore.fetch`."""
        caller = threading.get_ident()

        async def work(client: asyncssh.SFTPClient) -> Identity:
            identity = await self._status(client, path)
            if expected is not None and not identity.has_same_content(expected):
                raise RemoteChanged(self._shown(path))
            await self._check_inside(client, path)
            try:
                file = await self._timed(client.open(_coded(path), "rb"))
            except asyncssh.SFTPPermissionDenied:
                raise SourceBroken(f"{self._shown(path)} can't be opened: allow the user of url to read it.") from None
            async with file:
                if not _identity(await self._timed(file.stat())).has_same_content(identity):
                    raise RemoteChanged(self._shown(path))
                wanted = identity.size if most is None else min(most, identity.size)
                left = wanted
                while left > 0:
                    data = await self._timed(file.read(min(left, _BLOCK_BYTES)))
                    if not data:
                        raise RemoteChanged(self._shown(path))
                    target.write(cast("bytes", data))
                    note_progress(caller)
                    left -= len(data)
                if not _identity(await self._timed(file.stat())).has_same_content(identity):
                    raise RemoteChanged(self._shown(path))
            return identity

        return self._run(work, path)

    def move(self, path: str, target: str, identity: Identity, sha256: str) -> bool:  # noqa: ARG002 - a rename copies nothing
        """See `RemoteStore.move`. The file is renamed. A rename by OpenSSH never replaces an existing file."""

        async def work(client: asyncssh.SFTPClient) -> bool:
            if not await self._is_same(client, path, identity):
                return False
            await self._make_folder(client, str(PurePosixPath(target).parent))
            if await self._exists(client, target):
                raise FileExistsError(target)
            try:
                await self._timed(client.rename(_coded(path), _coded(target)))
            except asyncssh.SFTPError as error:
                if await self._exists(client, target):
                    raise FileExistsError(target) from None
                raise SourceUnavailable(
                    f"{self._shown(path)} can't be moved to {self._shown(target)}: {_words(error)} Let the user of url write to"
                    " both folders, which must be on one file system. The file stays until that is possible."
                ) from None
            if await self._is_same(client, target, identity):
                return True
            await self._timed(client.rename(_coded(target), _coded(path)))  # the file had been replaced: move it back
            return False

        return self._run(work, path)

    def delete(self, path: str, identity: Identity | None) -> bool:
        """See `RemoteStore.delete`."""

        async def work(client: asyncssh.SFTPClient) -> bool:
            if identity is not None and not await self._is_same(client, path, identity):
                return False
            try:
                await self._timed(client.remove(_coded(path)))
            except _GONE:
                return False
            except asyncssh.SFTPError as error:
                raise SourceUnavailable(
                    f"{self._shown(path)} can't be deleted: {_words(error)} The file stays until that is possible."
                ) from None
            return True

        return self._run(work, path)

    def write(self, path: str, data: bytes) -> None:
        """See `RemoteStore.write`."""

        async def work(client: asyncssh.SFTPClient) -> None:
            whole = PurePosixPath(path)
            await self._make_folder(client, str(whole.parent))
            hidden = str(whole.with_name(f".{whole.name}.part"))
            async with await self._timed(client.open(_coded(hidden), "wb")) as file:
                for start in range(0, len(data), _BLOCK_BYTES):
                    await self._timed(file.write(data[start : start + _BLOCK_BYTES]))
                # A server without the fsync extension decides when the file is durable.
                with contextlib.suppress(asyncssh.SFTPOpUnsupported):
                    await self._timed(file.fsync())
            try:
                await self._timed(client.posix_rename(_coded(hidden), _coded(path)))
            except asyncssh.SFTPOpUnsupported:
                if await self._exists(client, path):
                    await self._timed(client.remove(_coded(path)))
                await self._timed(client.rename(_coded(hidden), _coded(path)))

        try:
            self._run(work, path)
        except FileNotFoundError:
            raise SourceUnavailable(f"{self._shown(path)} can't be written: its folder was removed.") from None

    def steps(self) -> str:
        """See `RemoteStore.steps`."""

        async def work(client: asyncssh.SFTPClient) -> str:
            await self._timed(client.realpath(b"."))
            return f"{self._address.origin} has the known host key and accepts the user {self._address.user}."

        return self._run(work, self._address.folder, repeat=True)

    def resume(self) -> None:
        """See `RemoteStore.resume`."""
        self._login.resume()

    def interrupt(self) -> None:
        """See `RemoteStore.interrupt`."""
        self._loop.interrupt(self._abort)

    def close(self) -> None:
        """See `RemoteStore.close`."""
        self._loop.close(self._drop())

    # ------------------------------------------------------------------------------------------------- one connection

    def _run(self, work: Callable[[asyncssh.SFTPClient], Awaitable[T]], path: str, *, repeat: bool = False) -> T:
        """Run ``work`` on the open connection, and translate its errors to `FileNotFoundError` or `SourceUnavailable`.

        ``repeat``: ``work`` changes nothing. If an idle connection was lost, ``work`` is run again on a new connection.
        """

        async def attempt() -> T:
            was_open = self._client is not None
            try:
                return await work(await self._connected())
            except _LOST:
                await self._drop()
                if not (repeat and was_open):
                    raise
            return await work(await self._connected())

        async def translated() -> T:
            try:
                return await attempt()
            except _GONE:
                raise FileNotFoundError(path) from None
            except _LOST as error:
                await self._drop()
                why = describe_ssh_error(TimeoutError() if self._is_silent else error)
                raise SourceUnavailable(f"{self._address.origin} is not reachable: {why}") from None
            except asyncssh.Error as error:
                raise SourceUnavailable(f"{self._shown(path)} can't be used: {_words(error)}") from None
            except asyncio.CancelledError:
                await self._drop()
                raise

        return self._loop.run(translated)

    async def _connected(self) -> asyncssh.SFTPClient:
        if self._client is None:
            self._is_silent = False
            self._connection = await self._login.connect()
            self._client = await self._timed(self._connection.start_sftp_client())
        return self._client

    async def _drop(self) -> None:
        self._abort()
        self._connection = self._client = None

    def _abort(self) -> None:
        """Close the connection without a message to the server. Every waiting request then fails."""
        if self._connection is not None:
            self._connection.abort()

    async def _timed(self, request: Awaitable[T]) -> T:
        # A timeout closes the connection. The request is not cancelled, because its cleanup would wait for the silent server.
        timer = asyncio.get_running_loop().call_later(self._timeout, self._give_up)
        try:
            return await request
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        self._is_silent = True
        self._abort()

    # ------------------------------------------------------------------------------------------------------- requests

    async def _status(self, client: asyncssh.SFTPClient, path: str) -> Identity:
        attrs = await self._timed(client.lstat(_coded(path)))
        if not stat.S_ISREG(attrs.permissions or 0):
            raise FileNotFoundError(path)
        return _identity(attrs)

    async def _is_same(self, client: asyncssh.SFTPClient, path: str, identity: Identity) -> bool:
        try:
            return (await self._status(client, path)).has_same_content(identity)
        except (*_GONE, FileNotFoundError):
            return False

    async def _exists(self, client: asyncssh.SFTPClient, path: str) -> bool:
        try:
            await self._timed(client.lstat(_coded(path)))
        except _GONE:
            return False
        return True

    async def _check_inside(self, client: asyncssh.SFTPClient, path: str) -> None:
        """Check that no part of ``path`` below the source's folder is a link; else raise `SourceBroken`."""
        folder = self._address.folder
        if not PurePosixPath(path).is_relative_to(folder):
            return  # a person configured this path outside of the source's folder, so it may have links
        real_folder = await self._timed(client.realpath(_coded(folder)))
        real = await self._timed(client.realpath(_coded(path)))
        wanted = PurePosixPath(_text(real_folder)) / PurePosixPath(path).relative_to(folder)
        if PurePosixPath(_text(real)) != wanted:
            raise SourceBroken(f"{self._shown(path)} leads out of the folder by a link; it is not read.")

    async def _make_folder(self, client: asyncssh.SFTPClient, folder: str) -> None:
        try:
            attrs = await self._timed(client.stat(_coded(folder)))
        except _GONE:
            parent = str(PurePosixPath(folder).parent)
            if parent != folder:
                await self._make_folder(client, parent)
            try:
                await self._timed(client.mkdir(_coded(folder)))
            except asyncssh.SFTPError as error:
                if not await self._exists(client, folder):
                    raise SourceUnavailable(
                        f"The folder {self._shown(folder)} can't be made: {_words(error)} Create it, or allow"
                        " the user to create it."
                    ) from None
            return
        if not stat.S_ISDIR(attrs.permissions or 0):
            raise SourceUnavailable(f"{self._shown(folder)} is not a folder: move it away, or choose another folder.")


def _coded(path: str) -> bytes:
    return (path or ".").encode("utf-8", "surrogateescape")


def _text(path: object) -> str:
    return path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else str(path)


def _identity(attrs: asyncssh.SFTPAttrs) -> Identity:
    """Return the identity of a file from its SFTP attributes.

    SFTP has no time of the last status change (ctime). A hash of permissions and owner replaces this time.
    """
    permissions = hash((attrs.permissions, attrs.uid, attrs.gid))
    seconds = attrs.mtime or 0
    return Identity(0, 0, attrs.size or 0, int(seconds) * 10**9 + (attrs.mtime_ns or 0), permissions)


def _words(error: asyncssh.Error) -> str:
    if isinstance(error, asyncssh.SFTPPermissionDenied):
        return "permission denied."
    if isinstance(error, asyncssh.SFTPNoSpaceOnFilesystem | asyncssh.SFTPQuotaExceeded):
        return "there is no space left."
    return "the server reports a failure." if isinstance(error, asyncssh.SFTPError) else f"{type(error).__name__}."
