"""Every setting has an environment variable."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from workspaced.settings.environment import settings_from
from workspaced.settings.model import WorkspacedSettings

# Settings of several variables or with their own format, each with one variable that changes it.
PARTS = {
    "limits": ("WORKSPACED_BULK_ITEMS", "7"),
    "egress": ("WORKSPACED_ALLOW_HTTP", "true"),
    "maintenance_seconds": ("WORKSPACED_MAINTENANCE_SECONDS", "7.5"),
    "deliveries": ("WORKSPACED_LEASE_SECONDS", "7"),
    "conversion": ("WORKSPACED_CONVERSION_AT_ONCE", "7"),
    "encryption_key": ("WORKSPACED_ENCRYPTION_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
    "lost_encryption_key": ("WORKSPACED_LOST_ENCRYPTION_KEY", "0123"),
    "visible_id_prefix": ("WORKSPACED_VISIBLE_ID_PREFIX", "abc"),
    "proxies": ("WORKSPACED_TRUSTED_PROXIES", "10.0.0.0/8"),
    "history": ("WORKSPACED_HISTORY_CHANGES", "7"),
    "public_url": ("WORKSPACED_PUBLIC_URL", "https://data.example.org"),
}
DEFAULTS = WorkspacedSettings(data=Path("data"))
ELSEWHERE = {"data", "postgres", "bucket"}  # settings of the command line, which have variables for their options


@pytest.mark.parametrize("name", sorted({field.name for field in dataclasses.fields(WorkspacedSettings)} - ELSEWHERE))
def test_every_setting_can_be_set_by_its_variable(name: str) -> None:
    default = getattr(DEFAULTS, name)
    plain = {bool: str(not default).lower(), int: "7", float: "7.5"}.get(type(default), "")
    variable, text = PARTS.get(name, (f"WORKSPACED_{name.upper()}", plain))
    changed = settings_from({variable: text}, data=Path("data"))
    assert getattr(changed, name) != default
    assert dataclasses.replace(changed, **{name: default}) == DEFAULTS


def test_without_variables_every_setting_has_its_default() -> None:
    assert settings_from({}, data=Path("data")) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "text", "must"),
    [
        ("ICON_AS_TEXT", "yes", "true or false"),
        ("READERS", "2.5", "a whole number of at least 1"),
        ("READERS", "0", "a whole number of at least 1"),
        ("KEY_DAYS", "36501", "at most 36500"),
        ("HISTORY_DAYS", "3651", "at most 3650"),
        ("BUSY_SECONDS", "-1", "a number of at least 0.001"),
        ("MAINTENANCE_SECONDS", "1e9", "a number of at least 0.001"),
        ("IDEMPOTENCY_HOURS", "nan", "a number of at least 0.001"),
    ],
)
def test_an_invalid_value_is_named(name: str, text: str, must: str) -> None:
    with pytest.raises(ValueError, match=f"^WORKSPACED_{name} is '{text}', but must be {must}.$"):
        settings_from({f"WORKSPACED_{name}": text}, data=Path("data"))
