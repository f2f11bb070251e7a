"""Compressed files: their content is read; damaged and hostile ones are reported in one sentence."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from connectors.formats import resolve_format
from connectors.formats.compression import Packed, unpack_completely
from connectors.formats.zstandard import zstd
from ingestd.sdk import NOTICE, SourceBroken
from ingestd.sdk.formats import IsolatedFormat
from tests.support.convertible_files import zipped
from tests.support.format_records import positions, read_named, rejects, rows

CSV = b"part,mass\nA,0.10\nB\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_gives_the_records_of_its_content(suffix: str) -> None:
    chunks = read_named(f"a.CSV{suffix}", PACKERS[suffix](CSV))
    assert (rows(chunks), positions(chunks), [*rejects(chunks)]) == ([("A", "0.10")], [2], [3])


def half(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


MANY = b"part,mass\n" + b"".join(b"P%d,%d\n" % (n, n * 7919) for n in range(5000))


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        *((suffix, half(pack(MANY))) for suffix, pack in PACKERS.items()),
        *((suffix, CSV) for suffix in (*PACKERS, ".zip")),
    ],
)
def test_what_is_truncated_or_not_compressed_is_reported_in_one_sentence(suffix: str, data: bytes) -> None:
    with pytest.raises(SourceBroken, match=rf"^a\.csv\{suffix} can't be unpacked: .+\. Pack it again\.$"):
        read_named(f"a.csv{suffix}", data)


@pytest.mark.parametrize("suffix", PACKERS)
def test_several_streams_are_one_file(suffix: str) -> None:
    data = PACKERS[suffix](b"part,mass\nA,1\n") + PACKERS[suffix](b"B,2\n")
    assert rows(read_named(f"a.csv{suffix}", data)) == [("A", "1"), ("B", "2")]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_zero_bytes_after_a_stream_are_padding(suffix: str) -> None:
    padding = bytes(2**17)
    data = PACKERS[suffix](b"part,mass\nA,1\n") + padding + PACKERS[suffix](b"B,2\n") + padding
    assert rows(read_named(f"a.csv{suffix}", data)) == [("A", "1"), ("B", "2")]


@pytest.mark.parametrize(
    ("suffix", "damaged"), [*((suffix, 0) for suffix in PACKERS), (".gz", 20), (".bz2", 20), (".xz", 20)]
)
def test_damage_in_a_later_stream_is_reported(suffix: str, damaged: int) -> None:
    first, second, third = (PACKERS[suffix](text) for text in (b"part,mass\nA,1\n", b"B,2\n", b"C,3\n"))
    data = first + second[:damaged] + bytes([second[damaged] ^ 1]) + second[damaged + 1 :] + third
    with pytest.raises(SourceBroken, match=rf"^a\.csv\{suffix} can't be unpacked: .+\. Pack it again\.$"):
        read_named(f"a.csv{suffix}", data)
    with pytest.raises(SourceBroken, match=rf"^a\.csv\{suffix} can't be unpacked to its end: "):
        unpack_completely(BytesIO(data), f"a.csv{suffix}")


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
def test_a_compression_bomb_is_stopped_at_the_limit(suffix: str) -> None:
    content = b"part,mass\n" + b"A,1\n" * 1_000_000
    data = gzip.compress(content) if suffix == ".gz" else zipped({"a.csv": content})
    file_format = Packed(inner_format=lambda name: resolve_format(name, None), unpacked_bytes=100_000)
    with pytest.raises(SourceBroken, match="holds more than 100000 bytes once unpacked"):
        list(file_format.read(BytesIO(data), f"a.csv{suffix}"))


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
@pytest.mark.parametrize("inner", [".parquet", ".xlsx", ".mf4"])
def test_no_format_unpacks_more_than_its_limit_to_the_disk_of_temporary_files(
    suffix: str, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IsolatedFormat, "copied_bytes", 2**20)
    most = 0

    class Watched(BytesIO):
        def write(self, data: Any) -> int:
            nonlocal most
            most = max(most, self.tell() + len(data))
            return super().write(data)

    monkeypatch.setattr(tempfile, "TemporaryFile", Watched)
    bomb = bytes(3 * 2**20)
    data = zipped({f"a{inner}": bomb}) if suffix == ".zip" else PACKERS[suffix](bomb)
    with pytest.raises(SourceBroken, match=rf"^a\{inner} is larger than 1 MiB once unpacked\. Drop it unpacked\.$"):
        read_named(f"a{inner}{suffix}", data)
    assert 0 < most <= 2**20


def test_rows_of_the_only_member_of_a_zip_are_counted_from_one() -> None:
    data = zipped({"out/run.csv": CSV, "__MACOSX/run.csv": b"x", ".hidden.csv": b"x", "~$run.csv": b"x"})
    (chunk,) = read_named("export.zip", data)
    assert chunk.positions.to_list() == [2]
    assert chunk.facts["file.member"] == "out/run.csv"


def test_positions_include_the_name_of_the_zip_member() -> None:
    chunks = read_named("export.zip", zipped({"b.ndjson": b'{"part": "C"}\n', "a.csv": CSV}))
    assert positions(chunks) == ["a.csv:2", "b.ndjson:1"]
    assert list(rejects(chunks)) == ["a.csv:3"]


@pytest.mark.parametrize(
    ("names", "member", "read"),
    [
        (["raw/a.csv", "cooked/a.csv", "readme.txt"], "*.csv", ["cooked/a.csv", "raw/a.csv"]),
        (["raw/a.csv", "cooked/a.csv"], "cooked/*", ["cooked/a.csv"]),
        (["a.csv", "sub/b.csv", "c.txt"], "**/*.csv", ["a.csv", "sub/b.csv"]),
        (["../../a.csv"], "*", ["../../a.csv"]),
    ],
)
def test_members_are_selected_by_name_or_by_path_which_is_never_a_path_of_the_disk(
    names: list[str], member: str, read: list[str]
) -> None:
    chunks = read_named("x.zip", zipped(dict.fromkeys(names, CSV)), member=member)
    assert [chunk.facts["file.member"] for chunk in chunks] == read


def encrypted() -> bytes:
    data = bytearray(zipped({"a.csv": CSV}))
    data[6] |= 1  # the flag in the member's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory's
    return bytes(data)


INNER = zipped({"inner.zip": zipped({"a.csv": CSV})})


@pytest.mark.parametrize(
    ("name", "data", "member", "words"),
    [
        ("x.zip", zipped({"readme.txt": b"?"}), "*.csv", r"x\.zip holds no file that matches \*\.csv\."),
        ("x.zip", encrypted(), "*", r"x\.zip: a\.csv is encrypted\. Pack it without a password\."),
        ("x.zip", INNER, "*", r"x\.zip: inner\.zip is a zip file within a zip file, .* Unpack it .* member"),
        ("x.csv.zip", INNER, "*", r"x\.csv\.zip: inner\.zip is a zip file within a zip file, .* Unpack it .* member"),
        (
            "x.zip",
            zipped({"readme.txt": b"x"}),
            "*",
            r"x\.zip: readme\.txt: its suffix must be one of .* If readme\.txt holds no",
        ),
        ("x.zip", zipped({"a.csv": CSV, "b.txt": b""}), "*.*", r"x\.zip: b\.txt: .* set member to a glob .*'\*\.csv'"),
    ],
)
def test_a_zip_that_cannot_be_read_is_reported_with_what_to_do(name: str, data: bytes, member: str, words: str) -> None:
    with pytest.raises(SourceBroken, match=words):
        read_named(name, data, member=member)


def test_members_that_no_format_reads_are_left_out_with_a_notice() -> None:
    data = zipped({"a.csv": b"a\n1\n", "readme.txt": b"read me", "LICENSE": b"", "desktop.ini": b"[a]\nb=1\n"})
    (chunk,) = read_named("all.zip", data)
    assert (chunk.records.rows(), chunk.positions.to_list()) == ([("1",)], [2])
    assert (
        chunk.facts[NOTICE] == "No format reads its members readme.txt, LICENSE, so only the other members were read."
    )


@pytest.mark.parametrize("place", ["directory", "member"])
@pytest.mark.parametrize("offset", [1, 10**6, 2**31])
def test_a_zip_with_a_wrong_offset_is_rejected_and_does_not_wait(tmp_path: Path, place: str, offset: int) -> None:
    data = bytearray(zipped({"a.csv": b"part,mass\nA,1\n"}))
    end = data.index(b"PK\x05\x06")
    at = end + 16 if place == "directory" else data.index(b"PK\x01\x02") + 42
    data[at : at + 4] = offset.to_bytes(4, "little")
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with (
        path.open("rb", buffering=0) as file,
        pytest.raises(SourceBroken, match=r"^x\.zip can't be unpacked: .* Pack it again\.$"),
    ):
        list(resolve_format("x.zip", None).read(file, "x.zip"))
