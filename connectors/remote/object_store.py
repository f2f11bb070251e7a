"""The store for a bucket of S3, Azure Blob Storage or Google Cloud Storage: objects are files, and prefixes are folders.

Errors of the library obstore become sentences that say what to do.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from connectors.files.identity import Identity
from connectors.remote.options import RemoteOptions
from connectors.remote.request_loop import RequestLoop
from connectors.remote.store import RemoteChanged, RemoteEntry, RemoteStore, find_name_fault
from ingestd.sdk import SourceBroken, SourceUnavailable, note_progress
from ingestd.sdk.servers import s3_server_settings
from ingestd.sdk.tls import TlsFault, describe

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, RetryConfig

T = TypeVar("T")

_PAGE = 1_000
_BLOCK_BYTES = 2**20
_RETRIES = 2
_LONGEST_TRANSFER = timedelta(hours=6)

_DENIED = (exceptions.UnauthenticatedError, exceptions.PermissionDeniedError)
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"\b(?:status|code)\D{0,20}([45]\d\d)\b", re.IGNORECASE)
_CERTIFICATE = re.compile(r"InvalidCertificate\((?:\s|Other\(|OtherError\(){0,200}(\w{1,60})")
_NO_TLS = re.compile(r"kind: InvalidData,\s{0,200}error: InvalidMessage")
_CONNECTION = re.compile(r'\bOs \{[^{}"]{0,300}message: "([^"]{1,100})"|"(failed to lookup address[^"]{0,100})"')
_REDIRECT = "Received redirect without LOCATION"
_CERTIFICATES: Mapping[str, TlsFault] = {
    "UnknownIssuer": "untrusted",
    "CaUsedAsEndEntity": "untrusted",  # self-signed
    "NotValidForName": "other name",
    "NotValidForNameContext": "other name",
    "Expired": "expired",
    "ExpiredContext": "expired",
    "NotValidYet": "not yet valid",
    "NotValidYetContext": "not yet valid",
}
"""Faults of a certificate, by their names in the errors of obstore's TLS library."""
_RIGHTS = (
    "Check access_key, secret_key and their permissions: to list and read, and with after: archive or delete also to write and"
    " delete."
)
_REGION = "The bucket is in another region. Correct region, or endpoint."
_CLOCK = "The clock of this machine is wrong. Set it, for example by systemd-timesyncd."
_NO_BUCKET = "There is no bucket or container of this name. Correct url, or endpoint."
_KEY_MISMATCH = (
    "secret_key does not belong to access_key. Correct it. If it is right, check region, the clock of this machine, and whether a"
    " proxy changes the requests."
)
_REMEDIES: Mapping[str, str] = {
    "AccessDenied": _RIGHTS,
    "AuthenticationFailed": _KEY_MISMATCH,
    "AuthorizationHeaderMalformed": _REGION,
    "ContainerNotFound": _NO_BUCKET,
    "ExpiredToken": "The temporary credentials have ended. Renew them, and restart the daemon.",
    "InvalidAccessKeyId": "The server does not know access_key. Correct it, or endpoint.",
    "NoSuchBucket": _NO_BUCKET,
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": _CLOCK,
    "SignatureDoesNotMatch": _KEY_MISMATCH,
}
"""What to do after an error response, by the error code of the server."""


class ObjectStore(RemoteStore):
    """Reads, moves and writes objects of a bucket or container.

    A write replaces a whole object. An object is read only if it still has the ETag of the listing. A move copies and deletes.
    """

    copies = True

    def __init__(self, options: RemoteOptions, base: Path) -> None:
        super().__init__(options.address, RequestLoop("objects"))
        self._store = _open(options, base)

    def check(self, path: str) -> None:
        """See `RemoteStore.check`. A prefix always exists."""

    def list_files(
        self,
        folder: str,
        take: Callable[[RemoteEntry], None],
        enters: Callable[[str], bool],  # noqa: ARG002 - a listing has all levels
    ) -> None:
        """See `RemoteStore.list_files`. Requests 1,000 objects at a time, from all levels below ``folder``."""
        start = len(folder) + 1 if folder else 0

        async def work() -> None:
            pages = obstore.list(self._store, folder or None, chunk_size=_PAGE)
            async for page in pages:
                for meta in page:
                    name = meta["path"][start:]
                    take(RemoteEntry(name, _identity(meta), find_name_fault(name)))

        self._run(work, folder)

    def status(self, path: str) -> Identity:
        """See `RemoteStore.status`."""

        async def work() -> Identity:
            return _identity(await obstore.head_async(self._store, path))

        return self._run(work, path)

    def fetch(
        self, path: str, target: BinaryIO, *, expected: Identity | None = None, most: int | None = None
    ) -> Identity:
        """See `RemoteStore.fetch`.

        Each request has If-Match with the expected ETag, also a request by which obstore completes a truncated response.
        """
        caller = threading.get_ident()

        async def work() -> Identity:
            options: GetOptions = {}
            if expected is not None and expected.version:
                options["if_match"] = f'"{expected.version}"'
            try:
                result = await obstore.get_async(self._store, path, options=options)
            except exceptions.PreconditionError:
                raise RemoteChanged(self._shown(path)) from None
            identity = _identity(result.meta)
            if expected is not None and not _has_same_content(identity, expected):
                raise RemoteChanged(self._shown(path))
            received = 0
            async for data in result.stream(min_chunk_size=_BLOCK_BYTES):
                target.write(data)
                note_progress(caller)
                received += len(data)
                if most is not None and received >= most:
                    return expected or identity
            if received != identity.size:
                raise SourceUnavailable(f"{self._shown(path)} was cut at {received} of {identity.size} bytes.")
            return expected or identity

        return self._run(work, path)

    def move(self, path: str, target: str, identity: Identity, sha256: str) -> bool:
        """See `RemoteStore.move`. Before the original is deleted, the copy is compared with the content that was read."""

        async def work() -> bool:
            if await self._identity_of(target) is not None:
                raise FileExistsError(target)
            if not await self._is_same(path, identity):
                return False
            await obstore.copy_async(self._store, path, target)
            if not await self._is_copied(target, identity, sha256):
                await obstore.delete_async(self._store, target)  # the copy has content that was not read
                return False
            # If the original was replaced after the copy, the new object stays. The copy is the object that was read.
            if await self._is_same(path, identity):
                await obstore.delete_async(self._store, path)
            return True

        return self._run(work, path)

    def delete(self, path: str, identity: Identity | None) -> bool:
        """See `RemoteStore.delete`."""

        async def work() -> bool:
            if identity is not None and not await self._is_same(path, identity):
                return False
            await obstore.delete_async(self._store, path)
            return True

        try:
            return self._run(work, path)
        except FileNotFoundError:
            return False

    def write(self, path: str, data: bytes) -> None:
        """See `RemoteStore.write`."""

        async def work() -> None:
            await obstore.put_async(self._store, path, data)

        self._run(work, path)

    def steps(self) -> str:
        """See `RemoteStore.steps`."""

        async def work() -> None:
            async for _ in obstore.list(self._store, self._address.folder or None, chunk_size=1):
                return

        self._run(work, self._address.folder)
        return f"{self._address.origin} can be listed with these credentials."

    # ------------------------------------------------------------------------------------------------------- requests

    async def _identity_of(self, path: str) -> Identity | None:
        try:
            return _identity(await obstore.head_async(self._store, path))
        except (exceptions.NotFoundError, FileNotFoundError):
            return None

    async def _is_same(self, path: str, identity: Identity) -> bool:
        found = await self._identity_of(path)
        return found is not None and _has_same_content(found, identity)

    async def _is_copied(self, target: str, identity: Identity, sha256: str) -> bool:
        """Return True if the copy has the content that was read. If the ETags differ (large objects), compare its hash."""
        found = await self._identity_of(target)
        if found is None or found.size != identity.size:
            return False
        if (found.version and found.version == identity.version) or not sha256:
            return True
        digest = hashlib.sha256()
        result = await obstore.get_async(self._store, target)
        async for data in result.stream(min_chunk_size=_BLOCK_BYTES):
            digest.update(data)
        return digest.hexdigest() == sha256

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]], path: str) -> T:
        async def translated() -> T:
            try:
                return await work()
            except exceptions.NotFoundError:
                raise FileNotFoundError(path) from None
            except exceptions.InvalidPathError:
                raise SourceUnavailable(
                    f"{self._address.origin} has an object below {self._shown(self._address.folder)} with a name that can't be"
                    " listed: // or .. in it. Rename it; nothing is read until then."
                ) from None
            except exceptions.BaseError as error:
                raise SourceUnavailable(f"{self._shown(path)} {_explain_failure(error)}") from None

        return self._loop.run(translated)


def _open(options: RemoteOptions, base: Path) -> S3Store | AzureStore | GCSStore:
    """Return the client of the bucket; raise `SourceBroken` if obstore rejects the settings."""
    address, endpoint = options.address, options.endpoint.rstrip("/")
    secret = options.secret_key.get_secret_value() if options.secret_key is not None else ""
    wait = timedelta(seconds=options.timeout_seconds)
    client: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": wait,
        "read_timeout": wait,
        "timeout": _LONGEST_TRANSFER,
    }
    retry: RetryConfig = {"max_retries": _RETRIES, "retry_timeout": 2 * wait}
    # Without a server in the settings, variables such as GOOGLE_BASE_URL would lead to another server.
    settings: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    try:
        if address.scheme in {"s3", "az"}:
            # With a configured key, obstore would also use the environment's session token, or the token instead of the key.
            key: dict[str, Any] | None = None
            if address.scheme == "s3":
                settings = s3_server_settings(options.region, endpoint)
                if options.access_key:
                    key = {"access_key_id": options.access_key, "secret_access_key": secret}
            elif options.access_key:
                settings["account_name"] = options.access_key
                settings["use_emulator"] = False
                settings.setdefault("endpoint", f"https://{options.access_key}.blob.core.windows.net")
                if secret:
                    settings["account_key"] = secret
                    key = {"access_key": secret}
            if key is not None:
                settings["skip_signature"] = False
                key["expires_at"] = None
            return (S3Store if address.scheme == "s3" else AzureStore)(
                address.host,
                config=cast("Any", settings),
                client_options=client,
                retry_config=retry,
                credential_provider=cast("Any", lambda: key) if key else None,
            )
        if options.key_file is not None:
            settings["service_account"] = str(base / options.key_file)
        settings["base_url"] = settings.pop("endpoint", "https://storage.googleapis.com")
        return GCSStore(address.host, config=cast("Any", settings), client_options=client, retry_config=retry)
    except (exceptions.BaseError, ValueError) as error:
        raise SourceBroken(
            f"{address.origin} can't be used with its settings ({type(error).__name__}). Check access_key, secret_key, key_file,"
            " region and endpoint."
        ) from None


def _identity(meta: ObjectMeta) -> Identity:
    """Return the identity of an object, in the same form for listings and for responses.

    Some listings omit the quotes of the ETag, or state fractions of a second. Headers state whole seconds.
    """
    version = (meta["e_tag"] or "").removeprefix("W/").strip('"')
    return Identity(0, 0, meta["size"], int(meta["last_modified"].timestamp()) * 10**9, 0, version)


def _has_same_content(found: Identity, expected: Identity) -> bool:
    """Return True if an object has the expected ETag and size. Without an expected ETag, the whole identity must be equal."""
    if expected.version:
        return found.size == expected.size and found.version == expected.version
    return found.has_same_content(expected)


def _explain_failure(error: exceptions.BaseError) -> str:
    """Return why a request failed and what to do. Show only known parts of the error, because it may hold a signed URL."""
    text = str(error)
    if found := _CERTIFICATE.search(text):
        trust = "add it to the certificates of the system, or name its file in SSL_CERT_FILE; then restart the daemon"
        described = describe(_CERTIFICATES.get(found[1], "other"), detail=found[1], trust=trust)
        return f"can't be reached: {described}"
    if _NO_TLS.search(text):
        return f"can't be reached: {describe('no tls', detail='', trust='')}"
    code = found[1] if (found := _CODE.search(text)) else ""
    status = found[1] if (found := _STATUS.search(text)) else ""
    detail = f" ({code or f'status {status}'})" if code or status else ""
    if _REDIRECT in text:
        code = "PermanentRedirect"
    if code in _REMEDIES:
        return f"can't be used{detail}. {_REMEDIES[code]}"
    if isinstance(error, _DENIED) or status in {"401", "403"}:
        return f"can't be used: access is denied{detail}. {_RIGHTS}"
    if found := _CONNECTION.search(text):
        return f"can't be reached: {found[1] or found[2]}. Check endpoint and the network."
    return f"can't be used now{detail}."
