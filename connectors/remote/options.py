"""The options of a remote folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.directory.drop_options import DropOptions
from connectors.directory.readiness.not_open import NotOpen
from connectors.option_types import checked_by
from connectors.remote.address import RemoteAddress, parse_address


def _check_folder(folder: str) -> None:
    if any(part in {".", ".."} for part in folder.split("/")):
        raise ValueError("the path of a remote folder must not have a part . or ..")


_Folder = Annotated[str, Field(pattern=r"^/?[^/]+(/[^/]+)*/?$"), checked_by(_check_folder)]


class RemoteOptions(DropOptions):
    """A folder of an SFTP server, or a prefix of a bucket; its files are read like files of a folder on disk."""

    url: Annotated[str, checked_by(parse_address)] = Field(
        description=(
            "The folder: sftp://user@server/drop, sftp://user@server/~/drop (in the user's home), s3://bucket/prefix,"
            " az://container/prefix or gs://bucket/prefix."
        )
    )
    archive: _Folder | None = Field(
        default=None,
        description=(
            "The folder on the same server or in the same bucket into which acknowledged files move; required with after:"
            " archive. It is below url, or from the root if it begins with a slash."
        ),
    )
    receipts: _Folder | None = Field(
        default=None,
        description=(
            "The remote folder of the receipts. Default: each archived file has a receipt beside it, and other files have none."
        ),
    )
    quarantine: _Folder | None = Field(
        default=None,
        description=(
            "The remote folder into which the rejected rows of a file are written. Default: rejected in the archive, if there is"
            " one."
        ),
    )
    failed: _Folder | None = Field(
        default=None,
        description=(
            "The remote folder into which unreadable files move, each with its reason beside it. Default: failed in the archive"
            " with after: archive; otherwise they stay."
        ),
    )
    settle_seconds: float = Field(
        default=5,
        ge=0,
        description=(
            "How long a file's size, time and version must be unchanged before it is read. SFTP states whole seconds, so less"
            " than 2 may miss a change."
        ),
    )
    poll_seconds: float = Field(default=60, gt=0, description="How often the remote folder is listed.")
    known_hosts: Path | None = Field(
        default=None,
        description="sftp: a file with the server's host key, in the format of OpenSSH; required. No other key is trusted.",
    )
    key_file: Path | None = Field(
        default=None,
        description="sftp: the file with the private key. gs: the file with the key of the service account, as JSON.",
    )
    password: SecretStr | None = Field(
        default=None, description="sftp: the password of the user, or with key_file the passphrase of the key."
    )
    access_key: str = Field(
        default="",
        description=(
            "s3: the ID of the access key. az: the name of the storage account. Without it, the environment and the machine's"
            " identity are used."
        ),
    )
    secret_key: SecretStr | None = Field(
        default=None, description="s3: the secret of access_key. az: the key of the storage account."
    )
    region: str = Field(default="us-east-1", description="s3: the region of the bucket.")
    endpoint: str = Field(
        default="",
        description="s3, az, gs: the address of your own server, such as https://minio.example. Default: the provider's.",
    )
    max_files: int = Field(
        default=200_000, ge=1, le=2_000_000, description="A folder with more files is an error. This bounds the memory."
    )
    max_bytes: int = Field(
        default=16 * 2**30, ge=1, description="A larger file is rejected unread; each file is copied to the local disk."
    )
    timeout_seconds: float = Field(
        default=30, gt=0, le=600, description="How long the server may be silent before the connection is given up."
    )

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str) -> str:
        if endpoint and not endpoint.startswith(("https://", "http://")):
            raise ValueError("an endpoint begins with https:// or http://")
        if "@" in endpoint:
            raise ValueError("an endpoint must not hold credentials; use access_key and secret_key")
        return endpoint

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.after == "archive" and self.archive is None:
            raise ValueError("after: archive needs a folder: set archive")
        address = self.address
        for name in ("archive", "quarantine", "failed"):
            folder = getattr(self, name)
            if folder is not None and address.below(folder).strip("/") == address.folder.strip("/"):
                raise ValueError(f"{name} must be another folder than url, or its files would be read at once")
        if any(isinstance(rule, NotOpen) for rule in self.rules):
            raise ValueError("ready: not-open sees programs of this machine only; use marker or sha256")
        if address.scheme == "sftp":
            if self.known_hosts is None:
                raise ValueError("sftp needs known_hosts: the file with the host key of the server")
            if self.key_file is None and self.password is None:
                raise ValueError("sftp needs key_file or password")
        return self

    @property
    def address(self) -> RemoteAddress:
        """The parts of ``url``."""
        return parse_address(self.url)
