"""Candidate stores for the entries of a first load: ``python -m bench.limits.stores STORE ROWS FOLDER`` measures one store.

It prints the cost of the load, of ten changed entries in one durable transaction, and of a thousand look-ups by key. Keys are
shuffled, as in `bench.sample`. `hash-rowid` would need a second table for keys with equal hashes, which is not measured. lmdb,
rocksdict and duckdb are no dependencies: install them in the same environment. Decision record 0026 has the results.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

CHUNK = 100_000
PAGE = 10_000
RANGES_OF = 100_000
_CHANGED, _LOOKED_UP = 10, 1000


def chunks(rows: int) -> Iterator[pl.DataFrame]:
    """Yield chunks of unsorted entries: key, value, and the key's hash (Int64)."""
    numbers = pl.int_range(rows, eager=True).shuffle(seed=1)
    for start in range(0, rows, CHUNK):
        frame = pl.DataFrame({"n": numbers[start : start + CHUNK]})
        key = pl.format("P{}/{}", pl.col("n").cast(pl.String).str.zfill(8), pl.col("n") % 4)
        frame = frame.select(key.alias("key"), pl.format("{}.5 kg revision B", pl.col("n") % 4096).alias("value"))
        yield frame.with_columns(pl.col("key").hash(seed=1).reinterpret(signed=True).alias("hash"))


def ordered(rows: int, folder: Path, by: str) -> Iterator[pl.DataFrame]:
    """Yield all entries in the order of ``by``, in pages. Entries are divided into ranges in files, then each file is sorted."""
    bounds: pl.Series | None = None
    ranges = max(1, rows // RANGES_OF)
    for chunk in chunks(rows):
        piece = chunk.sort(by)
        if bounds is None:
            bounds = piece[by].gather([piece.height * index // ranges for index in range(1, ranges)])
        edges = [0, *piece[by].search_sorted(bounds).to_list(), piece.height]
        for index, (start, end) in enumerate(pairwise(edges)):
            with (folder / f"range{index}").open("ab") as file:
                file.write(_packed(piece[start:end]))
    for index in range(ranges):
        path = folder / f"range{index}"
        with path.open("rb") as file:
            pieces = list(_unpacked(file))
        path.unlink()
        yield from pl.concat(pieces).sort(by).iter_slices(PAGE)


def _packed(frame: pl.DataFrame) -> bytes:
    data = frame.serialize()
    return len(data).to_bytes(8, "little") + data


def _unpacked(file: Any) -> Iterator[pl.DataFrame]:
    while size := file.read(8):
        yield pl.DataFrame.deserialize(file.read(int.from_bytes(size, "little")))


class _Sqlite:
    """A table of SQLite. ``by``: the column that orders the B-tree; ``sorted_load``: sort the whole load before insertion."""

    def __init__(self, folder: Path, *, by: str, sorted_load: bool) -> None:
        self._folder, self._by, self._sorted = folder, by, sorted_load
        self._connection = sqlite3.connect(folder / "state.db", isolation_level=None)
        for pragma in ("page_size = 8192", "journal_mode = WAL", "synchronous = FULL", "cache_size = -65536",
                       "wal_autocheckpoint = 4000"):  # fmt: skip
            self._connection.execute(f"PRAGMA {pragma}")
        text = "sink INTEGER, key TEXT, value TEXT, data_type TEXT, segment INTEGER, run INTEGER, row_hash INTEGER, position BLOB"
        self._connection.execute(
            f"CREATE TABLE entry ({text}, PRIMARY KEY (sink, key)) WITHOUT ROWID"
            if by == "key"
            else f"CREATE TABLE entry (id INTEGER PRIMARY KEY, {text})"
        )

    def load(self, rows: int) -> None:
        source = ordered(rows, self._folder, self._by) if self._sorted else chunks(rows)
        for chunk in source:
            for page in chunk.sort(self._by).iter_slices(PAGE):
                self._write(page)

    def change(self, chunk: pl.DataFrame) -> None:
        self._write(chunk.with_columns(pl.lit("changed").alias("value")))

    def look_up(self, chunk: pl.DataFrame) -> int:
        name = "key" if self._by == "key" else "id"
        sql = f"SELECT e.value FROM json_each(?) j CROSS JOIN entry e ON {'e.sink = 1 AND ' * (name == 'key')}e.{name} = j.value"
        return len(self._connection.execute(sql, (json.dumps(chunk[self._by].to_list()),)).fetchall())

    def _write(self, page: pl.DataFrame) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        rows = page.select("hash", "key", "value").iter_rows()
        values, same = "1, ?2, ?3, 'scalar', 1, 1, ?1, 7", "DO UPDATE SET value = excluded.value"
        sql = f"INSERT INTO entry VALUES ({values}) ON CONFLICT (sink, key) {same}"
        if self._by == "hash":
            sql = f"INSERT INTO entry VALUES (?1, {values}) ON CONFLICT (id) {same} WHERE entry.key = excluded.key"
        self._connection.executemany(sql, rows)
        self._connection.execute("COMMIT")


class _Runs:
    """Immutable sorted Parquet files, each with a range of keys, and a small SQLite table for entries that changed later."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = _Sqlite(folder, by="key", sorted_load=False)

    def load(self, rows: int) -> None:
        pages: list[pl.DataFrame] = []
        number = 0
        for page in ordered(rows, self._folder, "key"):
            pages.append(page)
            if len(pages) == 100:
                number = self._store(pages, number)
        self._store(pages, number)

    def _store(self, pages: list[pl.DataFrame], number: int) -> int:
        path = self._folder / f"run{number:05}.parquet"
        if pages:
            pl.concat(pages).write_parquet(path, row_group_size=PAGE, statistics=True, compression="lz4")
            with path.open("rb") as file:
                os.fsync(file)
        pages.clear()
        return number + 1

    def change(self, chunk: pl.DataFrame) -> None:
        self._changed.change(chunk)

    def look_up(self, chunk: pl.DataFrame) -> int:
        files = sorted(self._folder.glob("run*.parquet"))
        wanted = chunk["key"].sort()
        found = pl.scan_parquet(files).filter(pl.col("key").is_in(wanted.implode())).select("value").collect()
        return found.height


class _Lmdb:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lmdb = import_module("lmdb").open(str(folder / "lmdb"), map_size=1 << 36)

    def load(self, rows: int) -> None:
        for page in ordered(rows, self._folder, "key"):
            with self._lmdb.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.putmulti(_pairs(page), append=True)

    def change(self, chunk: pl.DataFrame) -> None:
        with self._lmdb.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(_pairs(chunk))

    def look_up(self, chunk: pl.DataFrame) -> int:
        with self._lmdb.begin() as transaction, transaction.cursor() as cursor:
            return len(cursor.getmulti([key.encode() for key in chunk["key"]]))


class _Rocks:
    def __init__(self, folder: Path) -> None:
        self._module = import_module("rocksdict")
        options = self._module.Options(raw_mode=True)
        options.create_if_missing(True)
        self._database = self._module.Rdict(str(folder / "rocks"), options)

    def load(self, rows: int) -> None:
        for chunk in chunks(rows):
            for page in chunk.iter_slices(PAGE):
                self.change(page)
        self._database.flush()

    def change(self, chunk: pl.DataFrame) -> None:
        batch = self._module.WriteBatch(raw_mode=True)
        for key, value in _pairs(chunk):
            batch.put(key, value)
        options = self._module.WriteOptions()
        options.sync = True
        self._database.write(batch, options)

    def look_up(self, chunk: pl.DataFrame) -> int:
        return sum(value is not None for value in self._database[[key.encode() for key in chunk["key"]]])


class _Duck:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection = import_module("duckdb").connect(str(folder / "duck.db"), config={"memory_limit": "300MB"})
        self._connection.execute("CREATE TABLE entry (key VARCHAR, value VARCHAR, hash BIGINT)")

    def load(self, rows: int) -> None:
        for page in ordered(rows, self._folder, "key"):
            path = self._folder / "page.parquet"
            page.write_parquet(path)
            self._connection.execute(f"INSERT INTO entry SELECT * FROM read_parquet('{path}')")
        self._connection.execute("CHECKPOINT")

    def change(self, chunk: pl.DataFrame) -> None:
        self._connection.execute("BEGIN")
        for key in chunk["key"]:
            self._connection.execute("UPDATE entry SET value = 'changed' WHERE key = ?", (key,))
        self._connection.execute("COMMIT")

    def look_up(self, chunk: pl.DataFrame) -> int:
        marks = ",".join("?" * chunk.height)
        sql = f"SELECT value FROM entry WHERE key IN ({marks})"
        return len(self._connection.execute(sql, chunk["key"].to_list()).fetchall())


def _pairs(chunk: pl.DataFrame) -> list[tuple[bytes, bytes]]:
    packed = chunk.select("key", pl.concat_str("value", pl.lit("scalar|1|1|7|"), pl.col("hash").cast(pl.String)))
    return [(key.encode(), value.encode()) for key, value in packed.iter_rows()]


STORES: dict[str, Callable[[Path], Any]] = {
    "text-key": lambda folder: _Sqlite(folder, by="key", sorted_load=False),
    "text-key-sorted": lambda folder: _Sqlite(folder, by="key", sorted_load=True),
    "hash-rowid": lambda folder: _Sqlite(folder, by="hash", sorted_load=False),
    "hash-rowid-sorted": lambda folder: _Sqlite(folder, by="hash", sorted_load=True),
    "parquet-runs": _Runs,
    "lmdb-sorted": _Lmdb,
    "rocksdb": _Rocks,
    "duckdb-sorted": _Duck,
}


def _used(start: tuple[float, float, int]) -> dict[str, float]:
    wall, cpu, written = _now()
    return {
        "seconds": round(wall - start[0], 3),
        "cpu": round(cpu - start[1], 3),
        "mib": round((written - start[2]) / 2**20, 2),
    }


def _now() -> tuple[float, float, int]:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return time.monotonic(), time.process_time(), int(fields["wchar"])


def main(name: str, rows: int, folder: Path) -> None:
    """Measure one store in an empty folder, and print a line of JSON."""
    sample = next(chunks(rows)).sample(_LOOKED_UP, seed=3)
    store = STORES[name](folder)
    start = _now()
    store.load(rows)
    result: dict[str, Any] = {"store": name, "rows": rows, "load": _used(start)}
    start = _now()
    store.change(sample[:_CHANGED])
    result["ten"] = _used(start)
    start = _now()
    found = store.look_up(sample)
    result["look_up"] = _used(start)
    if found != _LOOKED_UP:
        raise AssertionError(f"{name} found {found} of {_LOOKED_UP} entries")
    result["size_mib"] = round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({**result, "peak_mib": int(status["VmHWM"].split()[0]) // 1024, "load_avg": os.getloadavg()[0]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
