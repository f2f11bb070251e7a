"""Settings of the background workers: webhook deliveries and file conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """How patiently things are delivered. ``retry_seconds`` has the pause before each try, the first one's too.

    ``at_once``: requests under way in this process, of which one receiver gets at most ``at_once_to_one``. ``batch_events``
    and ``batch_bytes``: what a request holds for a receiver that takes events of entries together.
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
        """``WORKSPACED_RETRY_SECONDS`` (a list with commas) and ``WORKSPACED_LEASE_SECONDS`` where they are given.

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
    """How conversions are carried out. ``retry_seconds`` has the pause before each further attempt."""

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
        """The defaults, each replaced where ``WORKSPACED_CONVERSION_<NAME>`` says otherwise.

        ``WORKSPACED_CONVERSION_LEASE_SECONDS`` draws the heartbeat with it: a fifth of the lease.

        Raises:
            ValueError: a value is no number of the right size; the sentence names the variable.
        """
        given: dict[str, float] = {}
        for name, lowest in (
            ("lease_seconds", 1),
            ("at_once", 1),
            ("seconds", 1),
            ("cpu_seconds", 1),
            ("memory_bytes", 268_435_456),
            ("output_bytes", 1_048_576),
        ):
            variable = f"WORKSPACED_CONVERSION_{name.upper()}"
            text = environment.get(variable, "")
            if text and not (text.isascii() and text.isdigit() and int(text) >= lowest):
                raise ValueError(f"{variable} is '{text}', but must be a whole number of at least {lowest}.")
            if text:
                given[name] = int(text)
        lease = given.get("lease_seconds", cls().lease_seconds)
        return cls(**given, heartbeat_seconds=lease / 5)  # type: ignore[arg-type]  # whole numbers, all of them


def _numbers(name: str, text: str, *, lowest: float) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(lowest <= number <= 604_800 for number in numbers):
        raise ValueError(f"{name} is '{text}', but must hold seconds, each from {lowest:g} to 604800.")
    return numbers
