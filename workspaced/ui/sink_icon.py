"""The icon of a data sink, as pages show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from workspaced.core.json_body import decode

_COLOR: Final = re.compile(r"#[0-9A-Fa-f]{3,8}|[A-Za-z]{1,30}")


def icon_of(sink: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the members of the icon; None without one. A setting of the service has icons as JSON text (contract S3)."""
    icon: Any = sink["icon"]
    if isinstance(icon, str):
        icon = decode(icon.encode())
    return icon if isinstance(icon, Mapping) else None


def shown_icon(sink: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return ``label``, and ``color`` for a sample of it; a color that is no plain name or number has no sample."""
    icon = icon_of(sink) or {}
    label = ", ".join(str(icon[part]) for part in ("name", "source", "color") if icon.get(part))
    color = str(icon.get("color") or "")
    return {"label": label, "color": color if _COLOR.fullmatch(color) else ""} if label else None
