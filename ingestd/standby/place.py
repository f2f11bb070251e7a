"""The place to which the active daemon ships its state: a folder that both hosts can write, a bucket, or a database."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from ingestd.core.errors import IngestdError
from ingestd.process.durable_file import write_durably
from ingestd.process.postgres_address import names_database
from ingestd.process.s3_server import s3_server_settings
from ingestd.settings.standby import StandbySettings
from ingestd.standby.database_url import schema_of
from ingestd.standby.mistake import standby_mistake

if TYPE_CHECKING:
    from obstore.store import S3Store

T = TypeVar("T")

OBJECT_BYTES = 64 << 20
"""The maximum size of an object of a shipment. A larger object belongs to another program."""
_NAME = re.compile(r"[0-9a-z]+/[0-9a-z.]+")
_REQUEST_SECONDS = 20.0


class PlaceUnavailable(IngestdError):
    """The place can't be used now; the sentence says why."""


class Place(ABC):
    """A store of named objects. The objects of shipments have names of the form folder/object.

    All methods block, may be called by several threads, and may raise `PlaceUnavailable`.
    """

    def __init__(self, shown: str) -> None:
        self.shown = shown
        """The address, for messages."""

    @abstractmethod
    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        """Store an object durably, and return True. With ``new``, keep an existing object, and return False."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if there is no object with this name."""

    @abstractmethod
    def names(self, folder: str = "") -> Iterator[str]:
        """Yield the names of the objects in a folder (empty: of all objects of shipments), in no particular order."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections. A later call opens them again."""


def is_name(text: str) -> bool:
    """Return whether a text is the name of an object of shipments."""
    return _NAME.fullmatch(text) is not None


def open_place(url: str, settings: StandbySettings, *, base: Path) -> Place:
    """Return the place with this address: a folder (relative to ``base``), ``s3://bucket/prefix``, or a PostgreSQL URL.

    Raises:
        ConfigurationError: the address or the settings can't be used.
    """
    if url.startswith("s3://"):
        return _Bucket(url, settings)
    if names_database(url):
        return _open_database(url)
    if "://" in url:
        scheme = url.partition("://")[0]
        raise standby_mistake(
            f"--standby names a folder, s3://bucket/prefix or postgresql://user@host/database, not {scheme}://."
        )
    return _Folder(base / url)


def _open_database(url: str) -> Place:
    try:
        from ingestd.standby.database_place import DatabasePlace  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise standby_mistake(f"postgresql:// needs psycopg: install ingestd[postgres] ({error}).") from error
    return DatabasePlace(schema_of(url))


class _Folder(Place):
    """A folder. Each object is a file. A crash leaves no incomplete file under an object's name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._folder = folder

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        target = self._folder / name
        with self._named_errors():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return write_durably(folder, target.name, data, replace=not new)
            finally:
                os.close(folder)

    def get(self, name: str) -> bytes | None:
        with self._named_errors():
            try:
                with (self._folder / name).open("rb") as file:
                    data = file.read(OBJECT_BYTES + 1)
            except FileNotFoundError:
                return None
        return data if len(data) <= OBJECT_BYTES else None

    def names(self, folder: str = "") -> Iterator[str]:
        with self._named_errors():
            for path in self._folder.glob(f"{folder or '*'}/*"):
                if is_name(name := f"{path.parent.name}/{path.name}"):
                    yield name

    def delete(self, name: str) -> None:
        with self._named_errors():
            path = self._folder / name
            path.unlink(missing_ok=True)
            with suppress(OSError):  # other objects are in it
                path.parent.rmdir()

    def close(self) -> None:
        """Do nothing: a folder has no connections."""

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PlaceUnavailable(f"The folder of the shipments {self.shown} can't be used: {reason}.") from error


class _Bucket(Place):
    """The objects below a prefix of an S3 bucket."""

    def __init__(self, url: str, settings: StandbySettings) -> None:
        parts = urlsplit(url)
        if not parts.netloc or parts.username or parts.query or parts.fragment:
            raise standby_mistake("Expected s3://bucket/prefix, without a user, ? and #.")
        super().__init__(f"s3://{parts.netloc}{parts.path.rstrip('/')}")
        self._prefix = unquote(parts.path).strip("/")
        self._store = _open_store(parts.netloc, settings)

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        import obstore  # noqa: PLC0415 - of an extra
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415

        def send() -> bool:
            try:
                obstore.put(self._store, self._path(name), data, mode="create" if new else "overwrite")
            except AlreadyExistsError:
                return False
            return True

        return self._call(send)

    def get(self, name: str) -> bytes | None:
        import obstore  # noqa: PLC0415
        from obstore.exceptions import NotFoundError  # noqa: PLC0415

        def receive() -> bytes | None:
            try:
                found = obstore.get(self._store, self._path(name))
                return bytes(found.bytes()) if found.meta["size"] <= OBJECT_BYTES else None
            except (NotFoundError, FileNotFoundError):
                return None

        return self._call(receive)

    def names(self, folder: str = "") -> Iterator[str]:
        import obstore  # noqa: PLC0415

        start = len(self._path(""))
        prefix = self._path(folder).rstrip("/") or None
        paths = self._call(lambda: [one["path"] for page in obstore.list(self._store, prefix) for one in page])
        yield from (path[start:] for path in paths if is_name(path[start:]))

    def delete(self, name: str) -> None:
        import obstore  # noqa: PLC0415

        self._call(lambda: obstore.delete(self._store, self._path(name)))

    def close(self) -> None:
        """Do nothing: the client of the bucket closes its connections itself."""

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _call(self, work: Callable[[], T]) -> T:
        from obstore.exceptions import BaseError  # noqa: PLC0415

        try:
            return work()
        except BaseError as error:
            # The text of the error may hold a signed address.
            status = re.search(r"\b(?:status|code)\D{0,20}([45]\d\d)\b", str(error), re.IGNORECASE)
            detail = f"{type(error).__name__}{f', status {status[1]}' if status else ''}"
            raise PlaceUnavailable(
                f"The shipments in {self.shown} can't be used now ({detail}). Check the settings below standby and the network."
            ) from None


def _open_store(bucket: str, settings: StandbySettings) -> S3Store:
    try:
        from obstore.store import S3Store  # noqa: PLC0415
    except ImportError as error:
        raise standby_mistake(f"s3:// needs obstore: install ingestd[objects] ({error}).") from error
    endpoint, wait = settings.endpoint.rstrip("/"), timedelta(seconds=_REQUEST_SECONDS)
    config = s3_server_settings(settings.region, endpoint)
    key: Any = None
    if settings.access_key:
        secret = settings.secret_key.get_secret_value() if settings.secret_key is not None else ""
        config["skip_signature"] = False
        # With a key in ``config``, obstore would also send the session token of the environment.
        key = {"access_key_id": settings.access_key, "secret_access_key": secret, "expires_at": None}
    options: Any = {"allow_http": endpoint.startswith("http://"), "connect_timeout": wait, "timeout": wait}
    try:
        return S3Store(
            bucket,
            config=cast("Any", config),
            client_options=options,
            retry_config={"max_retries": 1, "retry_timeout": wait},
            credential_provider=(lambda: key) if key else None,
        )
    except ValueError as error:
        raise standby_mistake(
            f"s3://{bucket} can't be used with the settings below standby ({type(error).__name__})."
        ) from None
