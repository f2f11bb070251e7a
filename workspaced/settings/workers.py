"""Settings of the background workers: webhook deliveries and file conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_NO_BOUNDS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """Settings of deliveries. ``retry_seconds`` has the pause before each attempt, including the first.

    ``at_once``: the maximum number of concurrent requests of this process; ``at_once_to_one``: the maximum for one receiver.
    ``batch_events`` and ``batch_bytes``: the maximum number and total size of the events in a request with a batch.
    """

    retry_seconds: tuple[float, ...] = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    jitter: float = 0.2
    lease_seconds: float = 60.0
    connect_seconds: float = 5.0
    total_seconds: float = 15.0
    response_bytes: int = 65_536
    stored_response_bytes: int = 1_024
    at_once: int = 64
    at_once_to_one: int = 16
    batch_events: int = 100
    batch_bytes: int = 262_144
    sweep_seconds: float = 30.0
    stop_seconds: float = 5.0
    keep_days: int = 30

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> DeliverySettings:
        """Return the defaults, replaced by ``WORKSPACED_RETRY_SECONDS`` and ``WORKSPACED_LEASE_SECONDS``.

        Raises:
            ValueError: a value can't be read; the sentence names the variable.
        """
        given = environment.get("WORKSPACED_RETRY_SECONDS", "")
        pauses = _numbers("WORKSPACED_RETRY_SECONDS", given, lowest=0) if given else cls().retry_seconds
        given = environment.get("WORKSPACED_LEASE_SECONDS", "")
        lease = _numbers("WORKSPACED_LEASE_SECONDS", given, lowest=1)[0] if given else cls().lease_seconds
        return cls(retry_seconds=pauses, lease_seconds=lease, total_seconds=min(cls().total_seconds, lease / 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionSettings:
    """Settings of conversions. ``retry_seconds`` has the pause before each attempt after the first."""

    retry_seconds: tuple[float, ...] = (10, 60, 300)
    lease_seconds: float = 300.0
    heartbeat_seconds: float = 60.0
    sweep_seconds: float = 30.0
    at_once: int = 2
    seconds: float = 240.0
    cpu_seconds: int = 120
    memory_bytes: int = 2_147_483_648
    output_bytes: int = 1_073_741_824

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ConversionSettings:
        """Return the defaults, replaced by the variables ``WORKSPACED_CONVERSION_<NAME>``.

        The heartbeat is a fifth of the lease.

        Raises:
            ValueError: a value is not a whole number, or is too small; the sentence names the variable.
        """
        lowest = {"memory_bytes": 268_435_456, "output_bytes": 1_048_576}
        lowest |= dict.fromkeys(("lease_seconds", "at_once", "seconds", "cpu_seconds"), 1)
        given = whole_numbers(environment, "WORKSPACED_CONVERSION_", lowest)
        lease = given.get("lease_seconds", cls().lease_seconds)
        return cls(**given, heartbeat_seconds=lease / 5)  # type: ignore[arg-type]  # each field is a number


def whole_numbers(
    environment: Mapping[str, str], prefix: str, lowest: Mapping[str, int], highest: Mapping[str, int] = _NO_BOUNDS
) -> dict[str, int]:
    """Return the fields that have a variable ``<prefix><NAME>``.

    ``lowest`` has the smallest permitted value of each field, and ``highest`` the largest permitted value of some fields.

    Raises:
        ValueError: a value is not a whole number, or is out of range; the sentence names the variable.
    """
    given: dict[str, int] = {}
    for name, least in lowest.items():
        variable = f"{prefix}{name.upper()}"
        text = environment.get(variable, "")
        if text and not (text.isascii() and text.isdigit() and int(text) >= least):
            raise ValueError(f"{variable} is '{text}', but must be a whole number of at least {least}.")
        if text and name in highest and int(text) > highest[name]:
            raise ValueError(f"{variable} is '{text}', but must be at most {highest[name]}.")
        if text:
            given[name] = int(text)
    return given


def _numbers(name: str, text: str, *, lowest: float) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(lowest <= number <= 604_800 for number in numbers):
        raise ValueError(
            f"{name} is '{text}', but must be seconds, each from {lowest:g} to 604800, separated by commas."
        )
    return numbers
