"""The settings of the service, read from environment variables. Every command that starts the service uses this module."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingestd.process.postgres_address import postgres_address
from workspaced.security.egress.rules import EgressRules
from workspaced.security.secret_box import LOST_VARIABLE, encryption_key
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import HistorySettings, Limits, WorkspacedSettings, public_url, visible_id_prefix
from workspaced.settings.workers import ConversionSettings, DeliverySettings, whole_numbers
from workspaced.storage.blobs.address import BucketAddress, checked_endpoint, split_bucket

_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,6})?", re.ASCII)
_MAY_BE_ZERO = frozenset({"drain_seconds", "key_cache_seconds"})


def settings_from(
    environment: Mapping[str, str], *, data: Path, database: str = "", blobs: str = "", dev: bool = False
) -> WorkspacedSettings:
    """Return the defaults, replaced by environment variables.

    ``database`` is the URL of PostgreSQL; empty: SQLite in the data folder. ``blobs`` is the URL of a bucket; empty: a folder
    in the data folder. ``dev`` logs every request, and permits webhooks that use plain http or an address of this machine.

    Raises:
        ValueError: a value can't be read; the sentence names the variable.
    """
    plain = _plain(environment)
    if dev:
        plain["log_requests"] = True
    return WorkspacedSettings(
        data=data,
        limits=Limits.from_environment(environment),
        egress=EgressRules.from_environment(environment, dev=dev),
        deliveries=DeliverySettings.from_environment(environment),
        conversion=ConversionSettings.from_environment(environment),
        history=HistorySettings.from_environment(environment),
        encryption_key=encryption_key(environment),
        lost_encryption_key=environment.get(LOST_VARIABLE, ""),
        visible_id_prefix=visible_id_prefix(environment),
        proxies=Proxies.from_environment(environment),
        public_url=public_url(environment),
        postgres=postgres_address(database) if database else None,
        bucket=bucket_address(blobs, environment) if blobs else None,
        **plain,
    )


def bucket_address(url: str, environment: Mapping[str, str]) -> BucketAddress:
    """Return the bucket of a URL (``s3://bucket/prefix``), with the settings of the environment.

    Raises:
        ValueError: a value can't be read; the sentence names the variable.
    """
    bucket, prefix = split_bucket(url)
    given: dict[str, Any] = dict(whole_numbers(environment, "WORKSPACED_BLOBS_", {"seconds": 1}))
    if region := environment.get("WORKSPACED_BLOBS_REGION"):
        given["region"] = region
    if path_style := environment.get("WORKSPACED_BLOBS_PATH_STYLE"):
        given["path_style"] = _flag("WORKSPACED_BLOBS_PATH_STYLE", path_style)
    if credentials := environment.get("WORKSPACED_BLOBS_CREDENTIALS"):
        given["credentials"] = Path(credentials)
    endpoint = checked_endpoint(environment.get("WORKSPACED_BLOBS_ENDPOINT", ""))
    return BucketAddress(bucket=bucket, prefix=prefix, endpoint=endpoint, **given)


def _plain(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are flags or numbers, if their variables are set."""
    given: dict[str, Any] = {}
    for field in dataclasses.fields(WorkspacedSettings):
        name = field.metadata.get("variable", f"WORKSPACED_{field.name.upper()}")
        text = environment.get(name, "")
        if not text:
            continue
        if field.type == "bool":
            given[field.name] = _flag(name, text)
        elif field.type == "int":
            given[field.name] = int(_number(name, text, whole=True, lowest=1))
        elif field.type == "float":
            given[field.name] = _number(name, text, whole=False, lowest=0 if field.name in _MAY_BE_ZERO else 0.001)
    return given


def _flag(name: str, text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"{name} is '{text}', but must be true or false.")
    return text == "true"


def _number(name: str, text: str, *, whole: bool, lowest: float) -> float:
    if not _SECONDS.fullmatch(text) or (whole and "." in text) or float(text) < lowest:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{name} is '{text}', but must be {kind} of at least {lowest:g}.")
    return float(text)
