"""The interface of a remote store: list, read, move, delete and write files. All paths are paths on the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from connectors.files.identity import Identity
from connectors.remote.address import RemoteAddress
from connectors.remote.request_loop import RequestLoop
from ingestd.sdk import SourceBroken, SourceUnavailable

_PATH_BYTES = 1024
_NAME_BYTES = 255


class RemoteRefused(SourceBroken):
    """The server can't be trusted, or refuses the credentials. No connection is made until a person acts."""


class RemoteChanged(SourceUnavailable):
    """The file was replaced or written to while it was read."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"{shown} was replaced or written to while it was read; it is read again once it is stable.")


class RemoteEntry(msgspec.Struct, frozen=True):
    r"""A file in a listing. ``name``: its path below the folder; bytes that are not UTF-8 are escapes such as ``\xff``.

    ``fault``: why the source can't use the file; empty if the file can be used.
    """

    name: str
    identity: Identity
    fault: str = ""


class RemoteStore(ABC):
    """A server or bucket. One thread at a time calls its methods, except `interrupt`, which another thread may call.

    Every method raises `SourceUnavailable` if the server is not reachable or does not perform the request. It raises
    `RemoteRefused` if the server can't be trusted or refuses the log-in.
    """

    copies: bool
    """True if a file moves by a copy and a deletion, which a crash can separate."""

    def __init__(self, address: RemoteAddress, loop: RequestLoop) -> None:
        self._address = address
        self._loop = loop

    @abstractmethod
    def check(self, path: str) -> None:
        """Check that the folder ``path`` exists.

        Raises:
            SourceUnavailable: the folder does not exist.
        """

    @abstractmethod
    def list_files(self, folder: str, take: Callable[[RemoteEntry], None], enters: Callable[[str], bool]) -> None:
        """Call ``take`` for each regular file below ``folder``, and for names that can't be used, with their fault.

        ``enters`` gets the path of a sub-folder, relative to ``folder``, and returns True if the sub-folder is to be listed.

        Raises:
            SourceUnavailable: the listing is incomplete, so a file that is not in it may still exist.
        """

    @abstractmethod
    def status(self, path: str) -> Identity:
        """Return the identity of a regular file.

        Raises:
            FileNotFoundError: there is no regular file.
        """

    @abstractmethod
    def fetch(
        self, path: str, target: BinaryIO, *, expected: Identity | None = None, most: int | None = None
    ) -> Identity:
        """Write the content into ``target`` and return the identity of exactly this content.

        ``expected``: the identity that the file must have. ``most``: the maximum number of bytes to write.

        Raises:
            FileNotFoundError: there is no regular file any more.
            RemoteChanged: the file has another identity than ``expected``, or changed during the call.
            SourceBroken: the file must not be read.
        """

    @abstractmethod
    def move(self, path: str, target: str, identity: Identity, sha256: str) -> bool:
        """Move a file to ``target`` if it still has the ``identity``. Return True if its content is now at ``target``.

        Raises:
            FileExistsError: there already is a file at ``target``; nothing was moved.
        """

    @abstractmethod
    def delete(self, path: str, identity: Identity | None) -> bool:
        """Delete a file if it still has the ``identity`` (None: any file). Return True if it was deleted."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Write or replace a small file, durably. Create its folders if necessary."""

    @abstractmethod
    def steps(self) -> str:
        """Connect, and return a sentence about the connection, for `ingestd check`."""

    def resume(self) -> None:  # noqa: B027 - a store without a log-in has nothing to forget
        """Forget that the server refused the credentials."""

    def interrupt(self) -> None:
        """Cancel a running request, and let all later requests fail until `allow`. Called from another thread."""
        self._loop.interrupt()

    def allow(self) -> None:
        """Permit requests again after `interrupt`, to acknowledge the files that were already read."""
        self._loop.allow()

    def close(self) -> None:
        """Close the connection. May be called twice."""
        self._loop.close()

    def _shown(self, path: str) -> str:
        return self._address.display(path)


def find_name_fault(name: str) -> str:
    """Return why a path from a server can't be used; empty if the path can be used.

    The name must stay within its folder, even if other programs join it to a path.
    """
    if any(part in {"", ".", ".."} for part in name.split("/")):
        return "its name leads out of its folder, or has an empty part"
    if any(character < " " or character == "\x7f" for character in name):
        return "its name has control characters; rename it"
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) > _PATH_BYTES or any(
        len(part.encode("utf-8", "surrogatepass")) > _NAME_BYTES for part in name.split("/")
    ):
        return f"its path is longer than {_PATH_BYTES} bytes, or a name in it than {_NAME_BYTES}"
    return ""
