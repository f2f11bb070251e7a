"""Bytes in a bucket of S3: for each name the objects ``name/0``, ``name/1`` … with up to 8 MiB each.

Each object is written by one request and read by requests of a megabyte. So each request has bounded memory and time, and a
slow client keeps no request open. Multipart uploads are not used, because a killed process would leave parts that no
listing shows. The object with the highest number is written last, so the bytes are complete if it exists.
"""

from __future__ import annotations

import asyncio
import configparser
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import obstore
import structlog
from obstore import exceptions
from obstore.store import S3Store

from ingestd.process.s3_server import s3_server_settings
from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs.address import BucketAddress
from workspaced.storage.blobs.file_threads import open_file
from workspaced.storage.blobs.port import IDENTITY, BlobStore, BlobStoreRefused
from workspaced.storage.port import StorageUnusable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Credential

T = TypeVar("T")

PART_BYTES: Final = 8_388_608
_READ_BYTES: Final = 1_048_576
_PARTS_AT_ONCE: Final = 4
"""How many objects are sent at once, so that uploads use at most 32 MiB of memory."""
_RETRIES: Final = 2
_CONNECT_SECONDS: Final = 5
_CREDENTIALS_MINUTES: Final = 5
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_DENIED: Final = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)


class Bucket(BlobStore):
    """A bucket as a blob store, as one process uses it."""

    def __init__(self, address: BucketAddress) -> None:
        """Raises StorageUnusable: the credentials can't be read."""
        self._address = address
        self._objects = _open(address)
        self._turns = asyncio.Semaphore(_PARTS_AT_ONCE)

    @property
    def shown(self) -> str:
        """See `BlobStore.shown`."""
        return str(self._address)

    async def prepare(self, source: Path) -> None:
        """Do nothing: a bucket needs no preparation. See `BlobStore.prepare`."""

    async def put(self, name: str, source: Path) -> None:
        """See `BlobStore.put`. The file is not moved."""
        with await open_file(source, "rb") as file:
            index, is_last = 0, False
            while not is_last:
                async with self._turn():
                    part = await asyncio.to_thread(file.read, PART_BYTES)
                    is_last = len(part) < PART_BYTES
                    if part or index == 0:
                        await self._request(
                            obstore.put_async(self._objects, f"{name}/{index}", part, use_multipart=False)
                        )
                index += 1

    async def holds(self, name: str, size: int) -> bool:
        """See `BlobStore.holds`."""
        last = max(size - 1, 0) // PART_BYTES
        try:
            meta = await self._request(obstore.head_async(self._objects, f"{name}/{last}"))
        except FileNotFoundError:
            return False
        return meta["size"] == size - last * PART_BYTES

    async def read(self, name: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """See `BlobStore.read`."""
        end = start + length
        while start < end:
            index, offset = divmod(start, PART_BYTES)
            wanted = min(_READ_BYTES, PART_BYTES - offset, end - start)
            part = bytes(
                await self._request(
                    obstore.get_range_async(self._objects, f"{name}/{index}", start=offset, length=wanted)
                )
            )
            if len(part) != wanted:
                raise self._problem("has fewer bytes of a file than were written")
            start += wanted
            yield part

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002  a bucket has no files
        """See `BlobStore.local_path`."""
        return None

    async def delete(self, names: Sequence[str]) -> None:
        """See `BlobStore.delete`."""
        for name in names:
            found = await self._request(obstore.list(self._objects, name).collect_async())
            if found:
                await self._request(obstore.delete_async(self._objects, [meta["path"] for meta in found]))

    async def identity(self) -> str | None:
        """See `BlobStore.identity`."""
        try:
            result = await self._request(obstore.get_async(self._objects, IDENTITY))
            return bytes(await self._request(result.bytes_async())).decode()
        except FileNotFoundError:
            return None

    async def set_identity(self, text: str) -> None:
        """See `BlobStore.set_identity`."""
        await self._request(obstore.put_async(self._objects, IDENTITY, text.encode(), use_multipart=False))

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until another object may be sent.

        Raises:
            UnavailableProblem: the bucket is so slow that this object got no turn within the time limit.
        """
        try:
            async with asyncio.timeout(self._address.seconds):
                await self._turns.acquire()
        except TimeoutError:
            raise self._problem("is too slow for the uploads that wait for it") from None
        try:
            yield
        finally:
            self._turns.release()

    async def _request(self, request: Awaitable[T]) -> T:
        """Return the result of a request.

        Raises:
            FileNotFoundError: there is no such object.
            BlobStoreRefused: there is no such bucket, or access is denied.
            UnavailableProblem: the store fails, or does not respond in time.
        """
        try:
            async with asyncio.timeout(self._address.seconds):
                return await request
        except TimeoutError:
            raise self._problem(f"has not responded within {self._address.seconds} s") from None
        except FileNotFoundError as error:
            if _code(error) == "NoSuchBucket":
                raise self._problem("does not exist", code="NoSuchBucket", kind=BlobStoreRefused) from None
            raise FileNotFoundError(self.shown) from None
        except exceptions.BaseError as error:
            code = _code(error)
            if isinstance(error, _DENIED):
                raise self._problem(
                    "may not be used with these credentials", code=code, kind=BlobStoreRefused
                ) from None
            raise self._problem("can't be used now", code=code) from None

    def _problem(
        self, what: str, *, code: str = "", kind: type[UnavailableProblem] = UnavailableProblem
    ) -> UnavailableProblem:
        """Return the problem, and log it with the address. Both omit the library's error text, which may have a signed URL."""
        structlog.get_logger().warning("bucket_failed", bucket=self.shown, reason=what, code=code or None)
        detail = f"The bucket that holds files {what}{f' ({code})' if code else ''}."
        return kind("storage_failed", detail, retry_seconds=5)


def _code(error: Exception) -> str:
    """Return the code of the server's error, if it has one."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _open(address: BucketAddress) -> S3Store:
    """Return the client. Raises StorageUnusable: the credentials or settings can't be used."""
    client: ClientConfig = {
        "allow_http": address.endpoint.startswith("http://"),
        "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, address.seconds)),
        "timeout": timedelta(seconds=address.seconds),
    }
    retry: RetryConfig = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=address.seconds)}
    config = s3_server_settings(address.region, address.requested_endpoint, bucket_in_host=not address.path_style)
    provider = None
    if (path := address.credentials) is not None:
        _read_credentials(path)

        def provider() -> S3Credential:
            return _read_credentials(path)

    try:
        return S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=cast("Any", config),
            client_options=client,
            retry_config=retry,
            credential_provider=provider,
        )
    except (exceptions.BaseError, ValueError) as error:
        raise StorageUnusable(
            f"{address} can't be used with its settings ({type(error).__name__}). Check the variables WORKSPACED_BLOBS_… and "
            "AWS_…."
        ) from None


def _read_credentials(path: Path) -> S3Credential:
    """Return the access key in a file. The client reads the file again after some minutes, so that the key can be replaced.

    Raises:
        StorageUnusable: the file can't be read. The message contains no part of its content.
    """
    parsed = configparser.ConfigParser(interpolation=None)
    try:
        parsed.read_string(path.read_text(encoding="utf-8"))
        section = parsed["default"]
        return {
            "access_key_id": section["aws_access_key_id"],
            "secret_access_key": section["aws_secret_access_key"],
            "token": section.get("aws_session_token"),
            "expires_at": datetime.now(UTC) + timedelta(minutes=_CREDENTIALS_MINUTES),
        }
    except OSError as error:
        raise StorageUnusable(f"The file of credentials {path} can't be read ({error.strerror}).") from None
    except (configparser.Error, KeyError, ValueError):
        raise StorageUnusable(
            f"The file of credentials {path} is malformed. It must have [default], aws_access_key_id = … and "
            "aws_secret_access_key = …, each on its own line."
        ) from None
