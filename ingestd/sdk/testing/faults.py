"""The suite for network faults, for sources that are servers: a proxy cuts, stalls and half-closes their connections."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from ingestd.core.errors import SourceError
from ingestd.core.record import Batch
from ingestd.sdk.batches import attach_rejects
from ingestd.sdk.connector import Connector
from ingestd.sdk.testing.source_checks import check_ends_in_time, stop_and_wait
from ingestd.sdk.testing.source_reader import check, partitions_of, records_of
from ingestd.sdk.testing.wire_proxy import Fault, WireProxy

_WAIT_SECONDS = 60.0
"""A long limit, because the machine may be busy."""
FAULTS: tuple[Fault, ...] = ("cut", "stall", "half-close")


class FaultRig(ABC):
    """A real server with at least three records."""

    @property
    @abstractmethod
    def port(self) -> int:
        """The port of the server on 127.0.0.1."""

    @abstractmethod
    def connector(self, port: int) -> Connector:
        """Return a new connector for the server at this port of 127.0.0.1. It waits a few seconds for a silent server."""


class FaultConformance:
    """Subclass this class in a test module and define a fixture ``rig``; pytest runs the tests."""

    def test_after_any_fault_a_reading_ends_with_a_sentence_and_a_later_one_is_complete(self, rig: FaultRig) -> None:
        """A connection may break at any byte. What was read before the break must not count as a complete reading."""
        with WireProxy(rig.port) as proxy:
            wanted, size = _undisturbed(rig, proxy)
            for what in FAULTS:
                for share in (0.0, 0.7):
                    connector = rig.connector(proxy.port)
                    proxy.break_after(what, int(size * share))
                    _read_disturbed(connector, wanted, f"{what} after {share:.0%} of the bytes")
                    proxy.heal()
                    found = _read_healed(connector)
                    check(sorted(found) == sorted(wanted), f"After {what} and its end, a reading has {found}.")
                    connector.close()

    def test_a_reading_that_waits_for_a_silent_server_ends_soon(self, rig: FaultRig) -> None:
        """The daemon stops within seconds, also while a network drops packets."""
        with WireProxy(rig.port) as proxy:
            check_ends_in_time(lambda: _end_in_silence(rig.connector(proxy.port), proxy))


def _end_in_silence(connector: Connector, proxy: WireProxy) -> float:
    """End a reading that waits for a silent server; return the seconds until the reading has ended."""
    proxy.break_after("stall", 0)
    ended = threading.Event()

    def read() -> None:
        try:
            _read(connector)
        except SourceError:
            return  # it was interrupted
        finally:
            ended.set()

    thread = threading.Thread(target=read, name="reading", daemon=True)
    thread.start()
    check(proxy.reached.wait(_WAIT_SECONDS), "The connector does not connect to the port that it got.")
    seconds = stop_and_wait(connector, ended)
    thread.join()
    connector.close()
    proxy.heal()
    return seconds


def _undisturbed(rig: FaultRig, proxy: WireProxy) -> tuple[list[tuple[str, dict[str, str]]], int]:
    """Return the records, and the number of bytes that the server sent for them."""
    connector = rig.connector(proxy.port)
    plenty = 2**40
    proxy.break_after("cut", plenty)
    wanted = records_of(_read(connector))
    size = plenty - (proxy.left or 0)
    connector.close()
    proxy.heal()
    check(len(wanted) >= 3, "The rig needs at least three records.")
    check(size < plenty, "The connector does not connect to the port that it got.")
    return wanted, size


def _read(connector: Connector) -> list[Batch]:
    return [
        batch for partition in partitions_of(connector) for batch in attach_rejects(connector.read(partition, None))
    ]


def _read_disturbed(connector: Connector, wanted: list[tuple[str, dict[str, str]]], fault: str) -> None:
    """Read during a fault. Fail unless all records arrive, perhaps over a second connection, or the error is a sentence."""
    try:
        found = records_of(_read(connector))
    except SourceError as error:
        check(str(error).endswith((".", "?", "!")), f"With {fault}, the error is not a sentence: {str(error)!r}.")
        return
    check(sorted(found) == sorted(wanted), f"With {fault}, a reading ends without an error and has only {found}.")


def _read_healed(connector: Connector) -> list[tuple[str, dict[str, str]]]:
    """Read after a fault. The first attempt may still use the closed connection."""
    try:
        return records_of(_read(connector))
    except SourceError:
        return records_of(_read(connector))
