"""The sources of a campaign: each changes at random and knows what its pipeline reads from it."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.support.push_client import TOKEN, bearer

_KEYS = 4
_BAD = "-1"
"""A value that the mapping rejects."""


class Reading(NamedTuple):
    """What a complete reading names: the entries, the keys of rejected rows, and whether a rejected row has no known key."""

    entries: dict[str, str]
    rejected: frozenset[str] = frozenset()
    unknown: bool = False


class Source:
    """One source of one pipeline. ``removes``: entries of vanished rows are removed.

    Numbers of values are taken from ``numbers``, so that no value occurs twice.
    """

    removes = False
    settings: dict[str, Any]

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int]) -> None:
        self.name, self.label, self.folder, self.numbers = name, label, folder, numbers

    def pipeline(self) -> dict[str, Any]:
        """Return the settings of the pipeline, without name and sink."""
        entries = {"key": f"{self.label}.{{part}}", "value": "{mass}", "values": {"min": 0}}
        return {"source": self.settings, "entries": entries}

    def change(self, rng: random.Random) -> str:
        """Change the source at random, and return what was done."""
        raise NotImplementedError

    def reading(self) -> Reading:
        """Return what is read of the source; of one that is read once, what came since `checkpoint`."""
        raise NotImplementedError

    def is_read(self) -> bool:
        """Return False while the source can see that something in it waits."""
        return True

    def checkpoint(self) -> None:
        """Everything is delivered."""

    def _key(self, part: str) -> str:
        return f"{self.label}.{part}"

    def _named(self, rows: Iterable[tuple[str, str]]) -> Reading:
        """Return the reading of rows in their order."""
        good = {self._key(part): mass for part, mass in rows if part and mass != _BAD}
        bad = frozenset(self._key(part) for part, mass in rows if mass == _BAD) - good.keys()
        return Reading(good, bad, any(not part for part, _ in rows))

    def _new_rows(self, rng: random.Random) -> list[tuple[str, str]]:
        rows = [(f"{self.name}{rng.randrange(_KEYS)}", str(next(self.numbers))) for _ in range(rng.randint(1, 4))]
        # A key of its own: a rejected row of a source without a whole reading says nothing about other rows.
        return [*rows, (f"{self.name}bad{next(self.numbers)}", _BAD)] if rng.random() < 0.2 else rows


class Rows(Source):
    """A source that is always read as a whole: rows by key. ``peers``: sources of the same keys in the same sink.

    A row is spoiled only while the last value of its key is known to be delivered, because a rejected row keeps that value.

    ``forgets``: the state of the daemon may become one of the last checkpoint. Then an entry that was set since is one that
    the daemon does not know. It removes such an entry only if no source of the sink has rejected rows, and all of them have
    ``deletes: remove``. So a key is not removed before the checkpoint after it was set, unless the sources are peers, which
    never have rejected rows.
    """

    removes = True
    forgets = False

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int]) -> None:
        super().__init__(name, label, folder, numbers)
        self.rows = {f"{name}anchor": str(next(numbers))}
        self.peers: list[Rows] = []
        self.has_keyless = False
        self._changed: set[str] = set()
        self.write()

    def write(self) -> None:
        """Store the rows."""
        raise NotImplementedError

    def change(self, rng: random.Random) -> str:
        pool = "pair" if self.peers else self.name
        part = f"{pool}{rng.randrange(_KEYS)}"
        action = rng.choice(["set", "set", "set", "remove", "copy" if self.peers else "spoil", "keyless"])
        if action == "keyless":
            return self._toggle_keyless()
        before = [part in one.rows for one in (self, *self.peers)]
        if action == "set":
            self.rows[part] = str(next(self.numbers))
        elif action == "copy":
            self.rows[part] = next(
                (peer.rows[part] for peer in self.peers if part in peer.rows), str(next(self.numbers))
            )
        elif action == "remove":
            if self._may_remove(part):
                self.rows.pop(part, None)
        elif part not in self._changed and part in self.rows:
            self.rows[part] = _BAD
        self._changed.add(part)
        # With another value, the row moves: the other file loses it before or after this one gets it.
        holders = [peer for peer in self.peers if action == "set" and part in peer.rows]
        for holder in holders:
            del holder.rows[part]
        for one in rng.sample([self, *holders], 1 + len(holders)):
            one.write()
        return f"{self.name}: {action} {part}={self.rows.get(part)} (had it: {before})"

    def _may_remove(self, part: str) -> bool:
        return not (self.forgets and not self.peers and part in self._changed)

    def _toggle_keyless(self) -> str:
        if self.peers or (not self.has_keyless and self._changed):
            return f"{self.name}: nothing"
        self.has_keyless = not self.has_keyless
        self._changed.add("")
        self.write()
        return f"{self.name}: {'with' if self.has_keyless else 'without'} a row without key"

    def listed(self) -> list[tuple[str, str]]:
        """Return the rows as they are stored."""
        return [*self.rows.items(), *([("", "5")] if self.has_keyless else [])]

    def reading(self) -> Reading:
        return self._named(self.listed())

    def checkpoint(self) -> None:
        self._changed.clear()


class CsvFile(Rows):
    """The connector ``file``."""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.csv"

    def write(self) -> None:
        _write(self.path, self.listed())
        self.settings = {"connector": "file", "path": str(self.path), "settle_seconds": 0, "deletes": "remove"}


class GroupedFile(CsvFile):
    """A file with two rows for each part; the entry is their sum."""

    def pipeline(self) -> dict[str, Any]:
        group = {"by": ["part"], "take": {"mass": {"sum": "mass"}}}
        return super().pipeline() | {"group": group}

    def change(self, rng: random.Random) -> str:
        part = f"{self.name}{rng.randrange(_KEYS)}"
        if part not in self.rows or rng.random() < 0.7 or not self._may_remove(part):
            self.rows[part] = str(next(self.numbers))
        else:
            del self.rows[part]
        self._changed.add(part)
        self.write()
        return f"{self.name}: group {part}={self.rows.get(part)}"

    def listed(self) -> list[tuple[str, str]]:
        return [row for part, mass in self.rows.items() for row in ((part, mass), (part, "1"))]

    def reading(self) -> Reading:
        return Reading({self._key(part): str(int(mass) + 1) for part, mass in self.rows.items()})


class Table(Rows):
    """A table of SQLite. ``mode``: of the connector."""

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int], *, mode: str) -> None:
        self._path = folder / f"{name}.sqlite"
        with closing(sqlite3.connect(self._path)) as opened:
            opened.execute("PRAGMA journal_mode=WAL")
            opened.execute("CREATE TABLE p (part TEXT PRIMARY KEY, mass TEXT) WITHOUT ROWID")
        super().__init__(name, label, folder, numbers)
        reading = {"mode": "changes", "key": "part"} if mode == "changes" else {"mode": mode}
        url = f"sqlite:///{self._path}"
        self.settings = {"connector": "database", "url": url, "table": "p", "deletes": "remove", **reading}

    def pipeline(self) -> dict[str, Any]:
        return super().pipeline() | {"schedule": {"every": "1s"}}

    def write(self) -> None:
        with closing(sqlite3.connect(self._path)) as opened, opened:
            opened.execute("DELETE FROM p")
            opened.executemany("INSERT INTO p VALUES (?, ?)", self.listed())

    def _toggle_keyless(self) -> str:
        return f"{self.name}: nothing"


class Arriving(Source):
    """A source of rows that are read once; the entries of earlier ones stay."""

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int]) -> None:
        super().__init__(name, label, folder, numbers)
        self._arrived = [(f"{name}0", str(next(numbers)))]
        self.arrive(self._arrived[:])

    def arrive(self, rows: list[tuple[str, str]]) -> None:
        """Hand rows over to the pipeline."""
        raise NotImplementedError

    def change(self, rng: random.Random) -> str:
        rows = self._new_rows(rng)
        self._arrived += rows
        self.arrive(rows)
        return f"{self.name}: {rows}"

    def reading(self) -> Reading:
        return self._named(self._arrived)

    def checkpoint(self) -> None:
        self._arrived.clear()


class DropFolder(Arriving):
    """Files that are archived. Their names are in the order of their arrival."""

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int]) -> None:
        self._drop = folder / name
        self._drop.mkdir()
        super().__init__(name, label, folder, numbers)
        self.settings = {
            "connector": "directory", "path": str(self._drop), "pattern": "*.csv", "settle_seconds": 0,
            "after": "archive", "archive": str(folder / f"{name}-done"),
        }  # fmt: skip

    def arrive(self, rows: list[tuple[str, str]]) -> None:
        _write(self._drop / f"{next(self.numbers):09}.csv", rows)

    def is_read(self) -> bool:
        return not list(self._drop.glob("[!.]*"))


class Log(Arriving):
    """A file that grows."""

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int]) -> None:
        self._path = folder / name / "rows.csv"
        self._path.parent.mkdir()
        self._path.write_text("part,mass\n")
        super().__init__(name, label, folder, numbers)
        self.settings = {
            "connector": "log",
            "path": str(self._path.parent),
            "pattern": "rows.csv",
            "format": {"type": "csv"},
        }

    def arrive(self, rows: list[tuple[str, str]]) -> None:
        with self._path.open("a") as opened:
            opened.write(_lines(rows))


class Push(Arriving):
    """Messages by POST. One without a response is sent again with its id, before later ones."""

    def __init__(self, name: str, label: str, folder: Path, numbers: itertools.count[int], *, address: str) -> None:
        self._path = f"/{name}"
        self.addresses = [address]
        self._queue: deque[tuple[str, list[tuple[str, str]]]] = deque()
        super().__init__(name, label, folder, numbers)
        auth = {"type": "bearer", "token": TOKEN}
        self.settings = {"connector": "push", "address": address, "path": f"/{name}", "auth": auth}

    def arrive(self, rows: list[tuple[str, str]]) -> None:
        self._queue.append((f"m{next(self.numbers)}", rows))
        self.send()

    def send(self) -> None:
        """Send what waits, until there is no response."""
        while self._queue:
            identity, rows = self._queue[0]
            body = [{"part": part, "mass": mass} for part, mass in rows]
            if not any(self._send(address, body, identity) for address in self.addresses):
                return
            self._queue.popleft()

    def _send(self, address: str, body: list[dict[str, str]], identity: str) -> bool:
        """Return whether a message is acknowledged."""
        try:
            response = httpx.post(f"http://{address}{self._path}", json=body, headers=bearer(identity), timeout=5.0)
        except httpx.TransportError:
            return False
        return response.status_code == 204

    def is_read(self) -> bool:
        self.send()
        return not self._queue


def _lines(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{part},{mass}\n" for part, mass in rows)


def _write(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    beside = path.with_name(f".{path.name}.part")
    beside.write_text("part,mass\n" + _lines(rows))
    beside.rename(path)


def make_sources(folder: Path, address: str) -> list[Source]:
    """Create sources of each kind; several of them share a sink."""
    numbers = itertools.count(1)

    def make(kind: Callable[..., Source], name: str, label: str, **more: Any) -> Source:
        return kind(name, label, folder, numbers, **more)

    one, two = CsvFile("one", "Pair", folder, numbers), CsvFile("two", "Pair", folder, numbers)
    one.peers, two.peers = [two], [one]
    return [
        one,
        two,
        make(CsvFile, "sheet", "Sheet"),
        make(GroupedFile, "grouped", "Sheet"),
        make(Table, "table", "Tables", mode="snapshot"),
        make(Table, "followed", "Tables", mode="changes"),
        make(DropFolder, "drop", "Arriving"),
        make(Log, "log", "Arriving"),
        make(Push, "push", "Pushed", address=address),
        make(CsvFile, "mixed", "Pushed"),
    ]
