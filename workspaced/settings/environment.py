"""The settings of the service from environment variables, the same for every command that starts it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workspaced.security.egress.rules import EgressRules
from workspaced.security.secret_box import encryption_key
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import HistorySettings, Limits, WorkspacedSettings, public_url, visible_id_prefix
from workspaced.settings.workers import ConversionSettings, DeliverySettings
from workspaced.storage.address import postgres_address

_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,6})?", re.ASCII)
_MAY_BE_ZERO = frozenset({"key_cache_seconds"})


def settings_from(
    environment: Mapping[str, str], *, data: Path, database: str = "", dev: bool = False
) -> WorkspacedSettings:
    """Return the defaults, replaced by environment variables.

    ``database`` is PostgreSQL's URL; empty: SQLite in the data folder. ``dev`` logs every request, and permits webhooks with
    plain http and on this machine.

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
        visible_id_prefix=visible_id_prefix(environment),
        proxies=Proxies.from_environment(environment),
        public_url=public_url(environment),
        postgres=postgres_address(database) if database else None,
        **plain,
    )


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
