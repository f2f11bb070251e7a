"""The place of the shipments of the simulated hosts: objects in memory, with its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ingestd.standby.place import Place, PlaceUnavailable
from tests.simulation.pausable_thread import pause

_MANIFESTS = "manifests/"


class SimulatedPlace(Place):
    """``is_away``: every call fails. ``slow``: how often everything else runs during a call in a thread that can pause.

    ``shipped`` is called with the name of each manifest that is stored.
    """

    def __init__(self, *, shipped: Callable[[str], None]) -> None:
        super().__init__("the simulated place")
        self.is_away = False
        self.slow = 1
        self.objects: dict[str, bytes] = {}
        self._shipped = shipped

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        self._call()
        if new and name in self.objects:
            return False
        self.objects[name] = data
        if name.startswith(_MANIFESTS):
            self._shipped(name)
        return True

    def get(self, name: str) -> bytes | None:
        self._call()
        return self.objects.get(name)

    def names(self, folder: str = "") -> Iterator[str]:
        self._call()
        yield from sorted(
            name for name in self.objects if name.startswith(f"{folder}/" if folder else "") and "/" in name
        )

    def close(self) -> None:
        """Nothing is open."""

    def delete(self, name: str) -> None:
        self._call()
        self.objects.pop(name, None)

    def lose_newest(self) -> bool:
        """Lose the newest shipment; return whether there was one."""
        newest = max((name for name in self.objects if name.startswith(_MANIFESTS)), default="")
        return self.objects.pop(newest, None) is not None

    def _call(self) -> None:
        for _ in range(self.slow):
            pause()
        if self.is_away:
            raise PlaceUnavailable("The simulated place is away.")
