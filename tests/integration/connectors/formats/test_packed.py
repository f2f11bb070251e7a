"""Compressed files: their content is read; damaged and hostile ones are reported in one sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.formats import RecordChunk, resolve_format
from connectors.formats.compression import Packed
from connectors.formats.zstandard import zstd
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import IsolatedFormat

CSV = b"part,mass\nA,0.10\nB\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def read(data: bytes, name: str, *, member: str = "*") -> list[RecordChunk]:
    return list(resolve_format(name, None, member=member).read(io.BytesIO(data), name))


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_gives_the_records_of_its_content(suffix: str) -> None:
    (chunk,) = read(PACKERS[suffix](CSV), f"a.CSV{suffix}")
    assert chunk.records.rows() == [("A", "0.10")]
    assert chunk.positions.to_list() == [2]
    assert [reject.position for reject in chunk.rejects] == [3]


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_truncated_compressed_file_is_reported_in_one_sentence(suffix: str) -> None:
    whole = PACKERS[suffix](b"part,mass\n" + b"".join(b"P%d,%d\n" % (n, n * 7919) for n in range(5000)))
    with pytest.raises(SourceBroken, match=rf"^a\.csv\{suffix} can't be unpacked: .+\. Pack it again\.$"):
        read(whole[: len(whole) // 2], f"a.csv{suffix}")


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
def test_bytes_that_are_not_compressed_are_reported_in_one_sentence(suffix: str) -> None:
    with pytest.raises(SourceBroken, match=r"can't be unpacked"):
        read(CSV, f"a.csv{suffix}")


def test_several_gzip_members_are_one_file() -> None:
    chunks = read(gzip.compress(b"part,mass\nA,1\n") + gzip.compress(b"B,2\n"), "a.csv.gz")
    assert [row for chunk in chunks for row in chunk.records.rows()] == [("A", "1"), ("B", "2")]


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
def test_a_compression_bomb_is_stopped_at_the_limit(suffix: str) -> None:
    inner_format = b"part,mass\n" + b"A,1\n" * 1_000_000
    data = gzip.compress(inner_format) if suffix == ".gz" else zipped(**{"a.csv": inner_format})
    file_format = Packed(inner_format=lambda name: resolve_format(name, None), unpacked_bytes=100_000)
    with pytest.raises(SourceBroken, match="holds more than 100000 bytes once unpacked"):
        list(file_format.read(io.BytesIO(data), f"a.csv{suffix}"))


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
@pytest.mark.parametrize("inner", [".parquet", ".arrow", ".xlsx", ".h5", ".mat", ".tdms", ".mf4"])
def test_no_format_unpacks_more_than_its_limit_to_the_disk_of_temporary_files(
    suffix: str, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IsolatedFormat, "copied_bytes", 2**20)
    most = 0

    class Watched(io.BytesIO):
        def write(self, data: Any) -> int:
            nonlocal most
            most = max(most, self.tell() + len(data))
            return super().write(data)

    monkeypatch.setattr(tempfile, "TemporaryFile", Watched)
    bomb = bytes(3 * 2**20)
    data = zipped(**{f"a{inner}": bomb}) if suffix == ".zip" else PACKERS[suffix](bomb)
    with pytest.raises(SourceBroken, match=rf"^a\{inner} is larger than 1 MiB once unpacked\. Drop it unpacked\.$"):
        read(data, f"a{inner}{suffix}")
    assert 0 < most <= 2**20


def test_rows_of_the_only_member_of_a_zip_are_counted_from_one() -> None:
    data = zipped(**{"out/run.csv": CSV, "__MACOSX/run.csv": b"x", ".hidden.csv": b"x", "~$run.csv": b"x"})
    (chunk,) = read(data, "export.zip")
    assert chunk.positions.to_list() == [2]
    assert chunk.facts["file.member"] == "out/run.csv"


def test_positions_include_the_name_of_the_zip_member() -> None:
    data = zipped(**{"b.ndjson": b'{"part": "C"}\n', "a.csv": CSV})
    first, second = read(data, "export.zip")
    assert first.positions.to_list() == ["a.csv:2"]
    assert [reject.position for reject in first.rejects] == ["a.csv:3"]
    assert second.positions.to_list() == ["b.ndjson:1"]


def test_members_are_selected_by_name_or_by_path() -> None:
    data = zipped(**{"raw/a.csv": CSV, "cooked/a.csv": b"part,mass\nZ,9\n", "readme.txt": b"?"})
    assert [chunk.facts["file.member"] for chunk in read(data, "x.zip", member="*.csv")] == [
        "cooked/a.csv",
        "raw/a.csv",
    ]
    (chunk,) = read(data, "x.zip", member="cooked/*")
    assert chunk.records.rows() == [("Z", "9")]


def test_a_zip_without_a_selected_member_is_reported() -> None:
    with pytest.raises(SourceBroken, match=r"x\.zip holds no file that matches \*\.csv\."):
        read(zipped(**{"readme.txt": b"?"}), "x.zip", member="*.csv")


def test_an_encrypted_member_is_reported_in_one_sentence() -> None:
    data = bytearray(zipped(**{"a.csv": CSV}))
    data[6] |= 1  # the flag in the member's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory's
    with pytest.raises(SourceBroken, match=r"x\.zip: a\.csv is encrypted\. Pack it without a password\."):
        read(bytes(data), "x.zip")


def test_a_member_name_with_a_path_outside_the_archive_is_harmless() -> None:
    (chunk,) = read(zipped(**{"../../a.csv": CSV}), "x.zip")
    assert chunk.facts["file.member"] == "../../a.csv"


def test_a_member_of_an_unknown_format_is_reported_with_the_setting_that_excludes_it() -> None:
    data = zipped(**{"readme.txt": b"hello"})
    with pytest.raises(
        SourceBroken, match=r"x\.zip: readme\.txt: .* If readme\.txt holds no data, set member to a glob"
    ):
        read(data, "x.zip")


@pytest.mark.parametrize("place", ["directory", "member"])
@pytest.mark.parametrize("offset", [1, 10**6, 2**31])
def test_a_zip_with_a_wrong_offset_is_rejected_and_does_not_wait(tmp_path: Path, place: str, offset: int) -> None:
    data = bytearray(zipped(**{"a.csv": b"part,mass\nA,1\n"}))
    end = data.index(b"PK\x05\x06")
    at = end + 16 if place == "directory" else data.index(b"PK\x01\x02") + 42
    data[at : at + 4] = offset.to_bytes(4, "little")
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with path.open("rb", buffering=0) as file:
        chunks = resolve_format("x.zip", None).read(file, "x.zip")
        with pytest.raises(SourceBroken, match=r"^x\.zip can't be unpacked: .* Pack it again\.$"):
            list(chunks)


def test_a_glob_of_members_may_have_no_folder() -> None:
    data = zipped(**{"a.csv": b"a\n1\n", "sub/b.csv": b"a\n2\n", "c.txt": b""})
    assert [chunk.facts["file.member"] for chunk in read(data, "x.zip", member="**/*.csv")] == ["a.csv", "sub/b.csv"]
