"""Shipments: copies of the state file in a place that survives the loss of the host.

A copy is divided into blocks. Each block is stored under the digest of its content, so only changed blocks are stored again. A
manifest lists the blocks of a copy. It is stored last, and blocks without a manifest are no shipment. All object names contain
the epoch, so a former active daemon that still runs can't replace or delete objects of its successor. The manifests are in a
separate folder, so that a search for the newest manifest lists only a small number of names.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ingestd.mirror.sqlite import open_state_file
from ingestd.standby.place import Place, PlaceUnavailable
from ingestd.standby.seal import Seal, UnreadableObject

BLOCK_BYTES = 256 << 10
_MANIFEST_BYTES = 32 << 20
_TOGETHER = 8
"""The number of blocks that are stored or read at the same time."""
_MANIFESTS = "manifests"
_NAME = re.compile(rf"(?:{_MANIFESTS}/)?(?P<epoch>[0-9]{{18}})[/.].+")
"""The form of the name of a manifest or a block."""


class ShipmentManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A shipment.

    ``at``: the time of the service just before the copy was made, in seconds since the epoch. ``size`` and ``sha256``: the
    bytes and the digest of the copy. ``pipelines``: the names of the pipelines.
    """

    epoch: int
    number: int
    at: float
    size: int
    sha256: str
    blocks: tuple[str, ...]
    pipelines: tuple[str, ...]


class ShipmentsUnreadable(PlaceUnavailable):
    """No manifest of the place can be read, probably because this host has another key."""


class ShippingStopped(Exception):
    """The daemon must write no more, because it may have lost the lease."""


class Shipments:
    """The shipments in a place. ``keep``: the number of kept shipments. All methods block; one thread at a time may call them.

    ``on_unusable`` is called with a sentence for each shipment that can't be restored.
    """

    def __init__(self, place: Place, seal: Seal, *, keep: int, on_unusable: Callable[[str], None]) -> None:
        self.place = place
        self._seal = seal
        self._keep = keep
        self._on_unusable = on_unusable
        self._stored: set[str] = set()
        """The blocks that this process has stored and verified."""
        self._kept: dict[str, tuple[str, ...]] = {}
        """The blocks of each kept shipment of this process, by the name of its manifest."""
        self._read: dict[str, ShipmentManifest | None] = {}
        """The existing manifests that `newest` has read, by name; None: the manifest can't be used."""
        self._unreadable: set[str] = set()
        """The names of the manifests that are damaged, or that the key does not open."""
        self._is_alone = False
        """Whether this process has deleted the shipments of older epochs."""

    def ship(
        self, file: Path, *, epoch: int, number: int, at: float, pipelines: Iterable[str], may_write: Callable[[], bool]
    ) -> ShipmentManifest:
        """Store a copy of the state file, verify it, and delete the oldest shipments beyond `keep`.

        Raises:
            PlaceUnavailable: the copy can't be stored now.
            ShippingStopped: ``may_write`` returned False.
        """
        whole, blocks = hashlib.sha256(), list[str]()
        with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="shipment") as pool, file.open("rb") as source:
            while window := [block for _ in range(_TOGETHER) if (block := source.read(BLOCK_BYTES))]:
                names = [f"{epoch:018d}/{self._seal.digest(block)}" for block in window]
                missing = {name: block for name, block in zip(names, window, strict=True) if name not in self._stored}
                if missing and not may_write():
                    raise ShippingStopped
                list(pool.map(self._store, missing, missing.values()))
                self._stored.update(missing)
                blocks += names
                for block in window:
                    whole.update(block)
            manifest = ShipmentManifest(
                epoch=epoch, number=number, at=at, size=file.stat().st_size, sha256=whole.hexdigest(), blocks=tuple(blocks),
                pipelines=tuple(pipelines),
            )  # fmt: skip
            if not may_write():
                raise ShippingStopped
            name = f"{_MANIFESTS}/{epoch:018d}.{number:012d}"
            self._store(name, msgspec.json.encode(manifest))
            self._kept[name] = manifest.blocks
            for superfluous in self._superfluous(epoch):
                self.place.delete(superfluous)
        return manifest

    def _store(self, name: str, content: bytes) -> None:
        """Store an object, read it back, and compare the contents."""
        self.place.put(name, self._seal.close(name, content))
        stored = self.place.get(name)
        try:
            is_equal = stored is not None and self._seal.open(name, stored, most=len(content)) == content
        except UnreadableObject:
            is_equal = False
        if not is_equal:
            raise PlaceUnavailable(f"{self.place.shown} does not return the content that was stored as {name}.")

    def _superfluous(self, epoch: int) -> Iterator[str]:
        """Yield the names of the objects to delete: manifests first, so that no manifest lists a deleted block."""
        if len(self._kept) < self._keep:
            return
        if not self._is_alone:
            found = ((name, _NAME.fullmatch(name)) for name in self.place.names())
            older = [name for name, match in found if match is not None and int(match["epoch"]) < epoch]
            yield from sorted(older, key=lambda name: not name.startswith(_MANIFESTS))
            self._is_alone = True
        while len(self._kept) > self._keep:
            oldest = min(self._kept)
            blocks = set(self._kept.pop(oldest)) - {one for kept in self._kept.values() for one in kept}
            yield oldest
            self._stored -= blocks
            yield from blocks

    def newest(self) -> ShipmentManifest | None:
        """Return the newest usable shipment; None if there is none. Each manifest is read only once.

        Raises:
            ShipmentsUnreadable: there are manifests, but none can be read.
            PlaceUnavailable: the place can't be read now.
        """
        names = self._manifest_names()
        self._read = {name: self._read[name] for name in names if name in self._read}
        for name in names:
            if name not in self._read:
                self._read[name] = self._manifest(name)
            if (found := self._read[name]) is not None:
                return found
        self._require_readable(names)
        return None

    def _require_readable(self, names: list[str]) -> None:
        self._unreadable.intersection_update(names)
        if names and len(self._unreadable) == len(names):
            raise ShipmentsUnreadable(
                f"No shipment in {self.place.shown} can be read. Give this host the standby.encryption_key of the host that was "
                "active. If this key is lost, stop all hosts, empty the place, and start the host with the present state first."
            )

    def _manifest_names(self) -> list[str]:
        """Return the names of the manifests, the newest first."""
        return sorted((name for name in self.place.names(_MANIFESTS) if _NAME.fullmatch(name)), reverse=True)

    def _manifest(self, name: str) -> ShipmentManifest | None:
        try:
            stored = self.place.get(name)
            if stored is None:
                return None  # deleted after the names were listed
            return msgspec.json.decode(self._seal.open(name, stored, most=_MANIFEST_BYTES), type=ShipmentManifest)
        except (UnreadableObject, msgspec.DecodeError) as error:
            self._unreadable.add(name)
            self._on_unusable(f"The shipment {name} can't be used: {error}")
            return None

    def fetch(
        self, target: Path, *, accepts: Callable[[ShipmentManifest], None] = lambda _: None
    ) -> ShipmentManifest | None:
        """Write the newest complete shipment to the file ``target`` and return its manifest; None if there is no such shipment.

        ``accepts`` may raise an exception to refuse a manifest.

        Raises:
            ShipmentsUnreadable: there are manifests, but none can be read.
            PlaceUnavailable: the place can't be read now.
        """
        names = self._manifest_names()
        for name in names:
            manifest = self._manifest(name)
            if manifest is None:
                continue
            accepts(manifest)
            try:
                self._fetch(manifest, target)
            except UnreadableObject as error:
                self._on_unusable(f"The shipment {manifest.number} of epoch {manifest.epoch} can't be used: {error}")
                continue
            return manifest
        self._require_readable(names)
        return None

    def _fetch(self, manifest: ShipmentManifest, target: Path) -> None:
        whole, written = hashlib.sha256(), 0
        with (
            ThreadPoolExecutor(_TOGETHER, thread_name_prefix="shipment") as pool,
            os.fdopen(open_state_file(target), "wb") as file,
        ):
            file.truncate(0)
            for start in range(0, len(manifest.blocks), _TOGETHER):
                for block in pool.map(self._block, manifest.blocks[start : start + _TOGETHER]):
                    file.write(block)
                    whole.update(block)
                    written += len(block)
        if (written, whole.hexdigest()) != (manifest.size, manifest.sha256):
            raise UnreadableObject("its blocks differ from the shipped blocks.")

    def _block(self, name: str) -> bytes:
        stored = self.place.get(name)
        if stored is None:
            raise UnreadableObject(f"{name} is missing.")
        return self._seal.open(name, stored, most=BLOCK_BYTES)
