"""The address of a bucket. This module performs no I/O and imports no client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingestd.process.s3_server import default_s3_endpoint

SCHEME: Final = "s3://"
_URL: Final = re.compile(
    r"s3://(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{1,62})(?:/(?P<prefix>[A-Za-z0-9._/-]*))?", re.ASCII
)
_ENDPOINT: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.:\[\]-]+)/?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAddress:
    """A prefix of a bucket of S3 or of a compatible store."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    """URL of the server; empty: the URL of AWS in the region."""
    region: str = "us-east-1"
    path_style: bool = True
    """Whether the bucket is in the path of a request; otherwise it is part of the host name."""
    credentials: Path | None = field(default=None, repr=False)
    """File with an access key in the format of AWS; None: the environment or the role of the machine provides the key."""
    seconds: int = 30
    """Time limit of each request, including its retries. The largest request sends 8 MiB."""

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}{f'/{self.prefix}' if self.prefix else ''}"

    @property
    def requested_endpoint(self) -> str:
        """The URL to which the client sends requests."""
        endpoint = self.endpoint or default_s3_endpoint(self.region)
        return endpoint if self.path_style else _ENDPOINT.sub(rf"\g<scheme>://{self.bucket}.\g<host>", endpoint)


def split_bucket(url: str) -> tuple[str, str]:
    """Return the bucket and the prefix of ``s3://bucket/prefix``.

    Raises:
        ValueError: the URL is malformed.
    """
    found = _URL.fullmatch(url)
    prefix = (found["prefix"] or "").removesuffix("/") if found else ""
    if found is None or {"", ".", ".."} & set(prefix.split("/") if prefix else ()):
        raise ValueError(f"The bucket is '{url}', but must be like s3://bucket or s3://bucket/prefix.")
    return found["bucket"], prefix


def checked_endpoint(url: str) -> str:
    """Return the URL of a server without a slash at its end.

    Raises:
        ValueError: the URL is malformed, or has more than a scheme, a host and a port.
    """
    if url and not _ENDPOINT.fullmatch(url):
        raise ValueError(
            "WORKSPACED_BLOBS_ENDPOINT must be like https://s3.example.org:9000, without a path or a user."
        )
    return url.rstrip("/")
