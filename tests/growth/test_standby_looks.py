"""A standby looks at the shipments every few seconds, whatever their size and their number of blocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.settings.standby import StandbySettings
from ingestd.standby.place import Place, open_place
from ingestd.standby.seal import Seal
from ingestd.standby.shipments import BLOCK_BYTES, Shipments
from tests.support.work_counter import Work

LOOKS = 10


class CountedPlace(Place):
    """Counts the names that a place lists, and the objects that are read from it."""

    def __init__(self, place: Place, work: Work) -> None:
        super().__init__(place.shown)
        self._place, self._work = place, work

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        return self._place.put(name, data, new=new)

    def get(self, name: str) -> bytes | None:
        self._work.add("objects read")
        return self._place.get(name)

    def names(self, folder: str = "") -> Iterator[str]:
        for name in self._place.names(folder):
            self._work.add("names listed")
            yield name

    def delete(self, name: str) -> None:
        self._place.delete(name)

    def close(self) -> None:
        self._place.close()


@pytest.mark.parametrize("blocks", [4, 16])
def test_a_look_lists_the_manifests_and_reads_each_of_them_once(tmp_path: Path, blocks: int) -> None:
    work, copy, keep = Work(), tmp_path / "copy", 3
    place = CountedPlace(open_place("place", StandbySettings(), base=tmp_path), work)

    def shipments(unusable: list[str]) -> Shipments:
        return Shipments(place, Seal(None), keep=keep, on_unusable=unusable.append)

    def ship(number: int) -> None:
        copy.write_bytes(random.Random(number).randbytes(blocks * BLOCK_BYTES))
        active.ship(copy, epoch=2, number=number, at=float(number), pipelines=["p"], may_write=lambda: True)

    active, unusable = shipments([]), list[str]()
    standby = shipments(unusable)
    for number in range(1, keep + 1):
        ship(number)
    work.reset()
    for _ in range(LOOKS):
        found = standby.newest()
        assert found is not None
        assert found.number == keep
    assert work.counts() == {"names listed": LOOKS * keep, "objects read": 1}
    with work.uncounted():
        ship(keep + 1)
        place.put(newest := max(place.names("manifests")), b"damaged")
    work.reset()
    for _ in range(LOOKS):
        found = standby.newest()
        assert found is not None
        assert found.number == keep
    assert work.counts() == {"names listed": LOOKS * keep, "objects read": 1}
    assert [newest in sentence for sentence in unusable] == [True]  # reported once
