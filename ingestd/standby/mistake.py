"""The error for a place, a key or a service that can't be used with `--standby`."""

from __future__ import annotations

from ingestd.core.errors import ConfigurationError, Mistake


def standby_mistake(sentence: str) -> ConfigurationError:
    """Return a configuration error about `--standby`, which is not a key of the configuration file."""
    return ConfigurationError((Mistake(file="--standby", line=0, column=0, key="", sentence=sentence),))
