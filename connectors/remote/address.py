"""The address of a remote folder."""

from __future__ import annotations

from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

Scheme: TypeAlias = Literal["sftp", "s3", "az", "gs"]

_SCHEMES: dict[str, Scheme] = {"sftp": "sftp", "s3": "s3", "az": "az", "gs": "gs"}
_SFTP_PORT = 22


class RemoteAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a folder's address. ``host``: the server, the bucket or the container.

    ``folder``: for SFTP, a path from the root of the server, such as ``/drop``, or from the user's home, such as ``drop``. For
    an object store, the prefix without slashes at its ends.
    """

    scheme: Scheme
    user: str
    host: str
    port: int
    folder: str

    @property
    def origin(self) -> str:
        """The address of the server, bucket or container, without the user."""
        port = f":{self.port}" if self.scheme == "sftp" and self.port != _SFTP_PORT else ""
        return f"{self.scheme}://{self.host}{port}"

    def display(self, path: str) -> str:
        """Return the URL of a path on the server, without the user."""
        if self.scheme == "sftp" and not path.startswith("/"):
            path = f"~/{path}"
        return f"{self.origin}/{path.lstrip('/')}".rstrip("/")

    def below(self, folder: str) -> str:
        """Return the path of a configured folder. ``folder`` is relative to this address unless it begins with a slash."""
        if folder.startswith("/"):
            return ("/" if self.scheme == "sftp" else "") + folder.strip("/")
        return join(self.folder, folder.strip("/"))


def join(folder: str, name: str) -> str:
    """Return the path of a name in a folder; an empty folder is the root of a bucket, or the home of the user."""
    return f"{folder.rstrip('/')}/{name}" if folder else name


def parse_address(url: str) -> RemoteAddress:
    """Return the parts of an address.

    Raises:
        ValueError: ``url`` is no address of a remote folder; the message says why.
    """
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise ValueError("an address begins with sftp://, s3://, az:// or gs://")
    if not parts.hostname:
        raise ValueError("the address names no server, bucket or container")
    if parts.password is not None:
        raise ValueError("an address must not hold a password; use password")
    if parts.query or parts.fragment:
        raise ValueError("an address must not have ? or #; in a name, write %3F or %23 instead")
    path = unquote(parts.path)
    if any(part in {".", ".."} for part in path.split("/")):
        raise ValueError("the path of an address must not have a part . or ..")
    if scheme != "sftp":
        if parts.username is not None or parts.port is not None:
            raise ValueError(f"an address {scheme}:// has no user and no port; use endpoint for your own server")
        host = parts.netloc
        return RemoteAddress(scheme=scheme, user="", host=host, port=0, folder=path.strip("/"))
    if not parts.username:
        raise ValueError("the address names no user: write sftp://user@server/folder")
    folder = path[2:].strip("/") if path == "/~" or path.startswith("/~/") else "/" + path.strip("/")
    return RemoteAddress(
        scheme=scheme, user=unquote(parts.username), host=parts.hostname, port=parts.port or _SFTP_PORT, folder=folder
    )
