"""What every part of a configuration has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsPart(BaseModel):
    """Frozen; a key that it does not know is a mistake; infinity is no number of seconds."""

    # A default is checked too where a field asks for it.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
