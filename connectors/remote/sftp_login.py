"""The log-in to an SFTP server. The host key must be known, and a refused log-in is not tried again."""

from __future__ import annotations

from pathlib import Path

import asyncssh

from connectors.filesystem import describe_error
from connectors.remote.address import RemoteAddress
from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteRefused
from ingestd.sdk import SourceBroken, SourceUnavailable

_STOPPED = "No connection is made until {files} changes or `ingestd reload`"
_KEEPALIVE_SECONDS = 15


class _HostKeyRecorder(asyncssh.SSHClient):
    """Rejects a host key that is not in known_hosts, and records it."""

    offered: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002 - the interface
        self.offered = key
        return False


class SftpLogin:
    """Connects to the server of ``options``. Relative paths start at ``base``.

    After an unknown host key or a refused user, `connect` fails at once until known_hosts or key_file changes, or until
    `resume` is called. A new attempt can't correct the host key, and may lock the account.
    """

    def __init__(self, options: RemoteOptions, base: Path) -> None:
        if options.known_hosts is None:
            raise AssertionError("the options require known_hosts")
        self.address: RemoteAddress = options.address
        self._options = options
        self._known_hosts = base / options.known_hosts
        self._key_file = base / options.key_file if options.key_file is not None else None
        self._refused: tuple[str, object] | None = None

    def resume(self) -> None:
        """Have the next `connect` try again."""
        self._refused = None

    async def connect(self) -> asyncssh.SSHClientConnection:
        """Return an open connection.

        Raises:
            RemoteRefused: the host key is not the known key, or the server refuses the user.
            SourceBroken: known_hosts or key_file can't be used.
            SourceUnavailable: the server does not respond.
        """
        files = self._stamp()
        if self._refused is not None:
            if self._refused[1] == files:
                raise RemoteRefused(self._refused[0])
            self._refused = None
        try:
            return await self._connect()
        except RemoteRefused as error:
            self._refused = (str(error), files)
            raise

    async def _connect(self) -> asyncssh.SSHClientConnection:
        options, address = self._options, self.address
        known = self._read_known_hosts()
        recorder = _HostKeyRecorder()
        try:
            connection, _ = await asyncssh.create_connection(
                lambda: recorder,
                address.host,
                address.port,
                config=None,
                known_hosts=known,
                username=address.user,
                client_keys=self._client_keys(),
                password=self._password(),
                agent_path=None,
                gss_host=None,
                kbdint_auth=self._key_file is None,
                connect_timeout=options.timeout_seconds,
                login_timeout=options.timeout_seconds,
                keepalive_interval=_KEEPALIVE_SECONDS,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise RemoteRefused(self._describe_host_key(known, recorder.offered, str(error.reason))) from None
        except asyncssh.KeyExchangeFailed as error:
            raise RemoteRefused(self._describe_host_key(known, None, str(error.reason))) from None
        except asyncssh.PermissionDenied:
            how = "the key" if self._key_file is not None else "the password"
            raise RemoteRefused(
                f"{address.origin} refuses the user {address.user} with {how}. Check url, key_file and password, and that the"
                f" server knows the public key. {self._stopped()}, because attempts may lock the account."
            ) from None
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise SourceUnavailable(f"{address.origin} can't be reached: {describe_ssh_error(error)}") from None
        return connection

    def _client_keys(self) -> list[asyncssh.SSHKey] | None:
        if self._key_file is None:
            return None
        secret = self._options.password
        try:
            return [asyncssh.read_private_key(self._key_file, secret.get_secret_value() if secret else None)]
        except OSError as error:
            raise SourceBroken(f"key_file {self._key_file} can't be read: {describe_error(error)}") from None
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            raise SourceBroken(
                f"key_file {self._key_file} holds no private key that can be used. A key with a passphrase needs password."
            ) from None

    def _password(self) -> str | None:
        secret = self._options.password
        return secret.get_secret_value() if secret is not None and self._key_file is None else None

    def _read_known_hosts(self) -> asyncssh.SSHKnownHosts:
        try:
            return asyncssh.read_known_hosts(str(self._known_hosts))
        except OSError as error:
            raise SourceBroken(f"known_hosts {self._known_hosts} can't be read: {describe_error(error)}") from None
        except ValueError as error:
            raise SourceBroken(f"known_hosts {self._known_hosts} is not in the format of OpenSSH: {error}.") from None

    def _describe_host_key(self, known: asyncssh.SSHKnownHosts, offered: asyncssh.SSHKey | None, reason: str) -> str:
        address = self.address
        trusted = known.match(address.host, "", address.port)[0]
        expected = " or ".join(_fingerprint(key) for key in trusted)
        if offered is None:
            wanted = f" of the known kind ({expected})" if expected else ""
            return f"{address.origin} has no host key{wanted} that can be verified: {reason}. {self._stopped()}."
        if not expected:
            return (
                f"The host key of {address.origin}, {_fingerprint(offered)}, is not in {self._known_hosts}. Compare it with"
                " the fingerprint that its administrator names, then add the line of `ssh-keyscan -p"
                f" {address.port} {address.host}`."
                f" {self._stopped()}."
            )
        return (
            f"{address.origin} has the host key {_fingerprint(offered)}, and {self._known_hosts} says {expected}. Either the"
            " server was set up anew, or another machine responds in its place. Ask its administrator which key is right; then"
            f" replace the line. {self._stopped()}."
        )

    def _stopped(self) -> str:
        files = " or ".join(str(path) for path in (self._known_hosts, self._key_file) if path is not None)
        return _STOPPED.format(files=files)

    def _stamp(self) -> object:
        """Return a value that changes when known_hosts or key_file changes."""
        return [_stamp_of(path) for path in (self._known_hosts, self._key_file) if path is not None]


def _stamp_of(path: Path) -> object:
    try:
        status = path.stat()
    except OSError as error:
        return error.errno
    return status.st_ino, status.st_size, status.st_mtime_ns


def _fingerprint(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def describe_ssh_error(error: Exception) -> str:
    """Return an error of the connection as a sentence, without text that the server sent."""
    if isinstance(error, TimeoutError):
        return "it did not respond in time (timeout_seconds)."
    if isinstance(error, OSError):
        return f"{error.strerror or error}."
    if isinstance(error, asyncssh.DisconnectError | asyncssh.SFTPConnectionLost | asyncssh.SFTPNoConnection):
        return "the connection was closed."
    return f"{type(error).__name__}."
