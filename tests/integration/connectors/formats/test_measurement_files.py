"""Measurement files: read in pieces, also if they are cut, and without any other file."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from asammdf import MDF, Signal
from asammdf.blocks.v4_blocks import ChannelConversion
from nptdms import TdmsFile
from scipy.io import savemat

from connectors.formats.hdf5 import Hdf5
from connectors.formats.hdf5 import reader as hdf5_reader
from connectors.formats.hdf5.reader import selections
from connectors.formats.mat import Mat
from connectors.formats.measurement import MeasurementFormat
from connectors.formats.mf4 import Mf4
from connectors.formats.mf4 import reader as mf4_reader
from connectors.formats.tdms import Tdms
from connectors.formats.tdms import reader as tdms_reader
from connectors.formats.tdms.reader import TdmsRecording
from ingestd.sdk import NOTICE, SourceUnavailable
from ingestd.sdk.formats import RecordChunk
from tests.support.format_records import located, parse, parser_sentence, read
from tests.support.format_records import sentence as refusal
from tests.support.measurement_files import (
    hdf5,
    mat,
    mat_with_objects,
    mf4_file,
    records_of,
    saved_mf4,
    tdms,
    tdms_segment,
)  # fmt: skip

CUT = "The last segment of a is incomplete; its content up to there was read."
SAMPLES = {"a": np.arange(7, dtype="i2"), "b": np.arange(7, dtype="f8") / 3, "c": np.arange(7, dtype="f4") / 7}


def rows(chunks: Iterable[RecordChunk]) -> dict[str, dict[str, str]]:
    return {str(position): row for position, row in located(chunks)}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_a_tdms_file_that_is_cut_anywhere_gives_what_its_library_reads(
    interleaved: bool, order: Literal["<", ">"]
) -> None:
    segment = tdms_segment(SAMPLES, interleaved=interleaved, order=order, chunks=2)
    data = segment + segment
    metadata = len(segment) - 2 * sum(samples.nbytes for samples in SAMPLES.values())
    for end in (*range(metadata, len(data), 11), len(data)):
        recording = TdmsRecording(io.BytesIO(data[:end]), "a")
        whole = TdmsFile.read(io.BytesIO(data[:end]))
        expected = {channel.path: channel.data for group in whole.groups() for channel in group.channels()}
        for index, channel in enumerate(recording.channels):
            pieces = list(recording.stream(index))
            samples = np.concatenate(pieces) if pieces else np.array([])
            assert samples.tolist() == expected[f"/'{channel.group}'/'{channel.name}'"].tolist()
        is_whole = end in (len(segment), len(data))
        assert recording.notice == ("" if is_whole else CUT)


class CountingFile(io.BytesIO):
    """A file that notes the largest number of bytes that was requested at once."""

    largest = 0
    total = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.largest = max(self.largest, len(data))
        self.total += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        count = super().readinto(buffer)
        self.largest = max(self.largest, count)
        return count


PIECE = 4_096
LARGE = np.random.default_rng(7).standard_normal(100_000)


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_large_segment_of_tdms_is_read_in_pieces(interleaved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tdms_reader, "PIECE_BYTES", PIECE)
    file = CountingFile(tdms_segment({"a": LARGE, "b": LARGE}, interleaved=interleaved, order="<"))
    (chunk,) = Tdms().parse(file, "a")
    assert file.largest <= PIECE
    check_statistics(chunk)


@pytest.mark.parametrize("shape", [(100_000,), (4, 25_000), (25_000, 4), (1, 100_000)])
def test_a_large_dataset_of_hdf5_is_read_in_pieces(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_reader, "PIECE_BYTES", PIECE)
    file = CountingFile(hdf5({}, {}, [("Run", "a", LARGE.reshape(shape), {})]))
    (chunk,) = Hdf5().parse(file, "a")
    assert file.largest <= max(PIECE, 8_192)  # the library reads its metadata in pieces of its own
    check_statistics(chunk)


def check_statistics(chunk: RecordChunk) -> None:
    for row in chunk.records.to_dicts():
        assert float(row["min"]) == np.min(LARGE)
        assert float(row["max"]) == np.max(LARGE)
        assert float(row["mean"]) == pytest.approx(np.mean(LARGE), rel=1e-12)
        assert float(row["rms"]) == pytest.approx(np.sqrt(np.mean(LARGE**2)), rel=1e-14)
        assert (float(row["first"]), float(row["last"]), row["count"]) == (LARGE[0], LARGE[-1], "100000")


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (7, 1, 2), (0, 3)])
@pytest.mark.parametrize("most", [1, 3, 5, 100])
def test_selections_cover_an_array_in_its_order(shape: tuple[int, ...], most: int) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape)
    pieces = [array[selection].reshape(-1) for selection in selections(shape, most)]
    assert [value for piece in pieces for value in piece] == array.reshape(-1).tolist()
    assert all(piece.size <= most for piece in pieces)


def test_samples_that_are_not_read_cost_nothing() -> None:
    file = CountingFile(tdms_segment({"a": LARGE}, interleaved=False, order="<"))
    (chunk,) = Tdms(statistics=()).parse(file, "a")
    assert chunk.records.columns == ["group", "channel"]
    assert file.largest < 1_000


MF4_GROUPS = {
    "Run": {"t": np.arange(7) / 10, "n": np.arange(7, dtype="i2"), "v": np.arange(7, dtype="f4") / 7},
    "Log": {"t": np.arange(5) / 4, "b": np.arange(5, dtype="u1")},
}
NOT_CLOSED = "a was not closed by its recorder; its content up to there was read."


def last_samples(channels: dict[str, npt.NDArray[Any]], count: int) -> list[tuple[str, str | None]]:
    return [(str(count), str(samples[count - 1]) if count else None) for samples in channels.values()]


def stored(folder: Path, data: bytes) -> BinaryIO:
    (folder / "a").write_bytes(data)
    return (folder / "a").open("rb")


@pytest.mark.parametrize("is_sorted", [True, False])
def test_an_mf4_file_that_was_not_closed_is_read_to_its_last_whole_record(is_sorted: bool, tmp_path: Path) -> None:
    whole = mf4_file(MF4_GROUPS, closed=False, is_sorted=is_sorted)
    run, log = (len(records_of(channels)[0]) for channels in MF4_GROUPS.values())
    sizes = [log] * 5 if is_sorted else [size + 1 for _ in range(5) for size in (run, log)] + [run + 1] * 2
    start = len(whole) - sum(sizes)
    for end in range(start + sizes[0], len(whole) + 1, 3):
        count = next((n for n in range(len(sizes)) if start + sum(sizes[: n + 1]) > end), len(sizes))
        counts = (7, count) if is_sorted else (min((count + 1) // 2, 5) + max(count - 10, 0), min(count // 2, 5))
        with stored(tmp_path, whole[:end]) as file:
            (chunk,) = Mf4().read(file, "a")
        assert (tmp_path / "a").read_bytes() == whole[:end]  # the repair is in memory
        expected = [one for n, of in zip(counts, MF4_GROUPS.values(), strict=True) for one in last_samples(of, n)]
        assert list(zip(chunk.records["count"], chunk.records["last"], strict=True)) == expected
        assert chunk.facts["file.notice"] == NOT_CLOSED


def test_an_mf4_file_that_can_not_be_repaired_is_rejected_with_advice() -> None:
    assert refusal(Mf4(), mf4_file(MF4_GROUPS, closed=False, lists=1)) == ""
    assert refusal(Mf4(), mf4_file(MF4_GROUPS, closed=False, lists=2)) == (
        "a was not closed by its recorder, and its samples are in several lists, which can't be repaired here. Open it with the"
        " program of the recorder and save it."
    )


def random_groups() -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Return two groups of channels with 313 KiB together, which nothing compresses."""
    random = np.random.default_rng(1)
    return {"A": {"v": random.random(20_000)}, "B": {"w": random.random(12_000), "x": random.random(12_000)}}


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("sort_bytes", [2**20, 2**17, 1])
def test_mixed_records_are_the_same_with_any_memory_to_sort_them(
    is_closed: bool, sort_bytes: int, tmp_path: Path
) -> None:
    groups = random_groups()
    wanted = [samples for channels in groups.values() for samples in channels.values()]
    with stored(tmp_path, mf4_file(groups, closed=is_closed, is_sorted=False)) as file:
        recording = mf4_reader.Mf4Recording(file, "a", sort_bytes=sort_bytes)
        for number, samples in enumerate(wanted):
            found = np.concatenate([piece for _, piece in recording.pieces([number])])
            assert found.tobytes() == samples.tobytes()


def test_mixed_records_in_compressed_blocks_need_the_memory_for_all_of_them() -> None:
    plain = mf4_file(random_groups(), is_sorted=False)
    at = plain.rindex(b"##DT")
    content = plain[at + 24 :]
    packed = zlib.compress(content)
    head = struct.pack("<2sBBIQQ", b"DT", 0, 0, 0, len(content), len(packed))
    block = b"##DZ" + bytes(4) + struct.pack("<QQ", 24 + len(head) + len(packed), 0) + head + packed
    assert len(rows(read(Mf4(sort_bytes=2**20), plain[:at] + block))) == 3
    assert refusal(Mf4(sort_bytes=2**17), plain[:at] + block) == (
        "a has mixed records of several groups in compressed blocks, and sorting them needs more than 128 KiB of memory. Open it"
        " with the program of the recorder and save it sorted, or set a larger sort_bytes in format."
    )


def test_an_mf4_file_with_fewer_samples_than_it_states_is_rejected() -> None:
    data = mf4_file({"Run": {"v": LARGE}})
    short = data.replace((100_000).to_bytes(8, "little"), (100_001).to_bytes(8, "little"))
    assert refusal(Mf4(), short) == (
        "a can't be read as MF4: Run/v has 100000 samples, and the file states 100001. It is damaged, incomplete or of another"
        " format."
    )
    small = mf4_file(MF4_GROUPS)
    assert all(refusal(Mf4(), small[:end]) for end in range(0, len(small), 50))


@pytest.mark.parametrize("compression", [0, 1, 2])
@pytest.mark.parametrize("version", ["4.10", "4.20"])
def test_a_group_of_mf4_is_read_once_in_pieces(
    version: Literal["4.10", "4.20"], compression: Literal[0, 1, 2], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mf4_reader, "PIECE_BYTES", 2**18)
    with MDF(version=version) as mdf:
        mdf.append([Signal(LARGE, np.arange(LARGE.size), name=f"c{number}") for number in range(8)], acq_name="Run")
        data = saved_mf4(mdf, compression=compression)
    file = CountingFile(data)
    (chunk,) = Mf4(select="Run/c*").parse(file, "a")
    check_statistics(chunk)
    assert file.largest <= 2**22  # the library reads data blocks of 4 MiB
    assert file.total < 1.1 * len(data)


def test_channels_of_mf4_that_are_computed_or_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mf4_reader, "PIECE_BYTES", 24)
    invalid = np.array([True, False, False, True, False])
    with MDF(version="4.10") as mdf:
        mdf.append([Signal(np.arange(5, dtype="u8") + 2**60, np.arange(5) / 10, name="n", invalidation_bits=invalid)])
        mdf.append([Signal(np.arange(5, dtype="f8"), np.arange(5), name="v")])
        channel = mdf.groups[1].channels[0]
        channel.channel_type, channel.bit_count = 3, 0  # a virtual master: the number of the record, converted
        channel.conversion = ChannelConversion(conversion_type=1, a=0.5, b=10)
        data = saved_mf4(mdf)
    found = rows(parse(Mf4(), data))
    base = 2**60
    assert {name: found["group 1/n"].get(name) for name in ("count", "min", "max", "first", "last", "nan_count")} == {
        "count": "5", "min": str(base + 1), "max": str(base + 4), "first": None, "last": str(base + 4), "nan_count": "2",
    }  # fmt: skip
    samples = rows(parse(Mf4(records="samples"), data))
    wanted = [None, str(base + 1), str(base + 2), None, str(base + 4)]
    assert [samples[f"group 1:{n}"].get("n") for n in range(1, 6)] == wanted
    assert [samples[f"group 2:{n}"]["time"] for n in range(1, 6)] == ["10.0", "10.5", "11.0", "11.5", "12.0"]


def test_text_and_conversions_of_mf4() -> None:
    t = np.arange(2)
    with MDF(version="4.10") as mdf:
        for encoding in ("latin-1", "utf-8", "utf-16-le", "utf-16-be"):
            texts = np.array([text.encode(encoding) for text in ("grün", "on")])
            mdf.append([Signal(texts, t, name=encoding, encoding=encoding)])
        raw = np.array([0, 1], dtype="u1")
        table = {"val_0": 0, "text_0": b"off", "val_1": 1, "text_1": b"an/aus \xc3\xbc"}
        mdf.append(
            [Signal(raw, t, name="state", conversion=ChannelConversion(conversion_type=7, ref_param_nr=3, **table))]
        )
        mdf.append([Signal(raw, t, name="line", conversion={"a": 0.5, "b": 1})])
        data = saved_mf4(mdf)
    found = {key.partition("/")[2]: (row["first"], row["last"]) for key, row in rows(parse(Mf4(), data)).items()}
    assert found == {
        "time": ("0", "1"), "state": ("off", "an/aus ü"), "line": ("1.0", "1.5"),
        **dict.fromkeys(("latin-1", "utf-8", "utf-16-le", "utf-16-be"), ("grün", "on")),
    }  # fmt: skip


def test_channels_of_mf4_with_a_formula_are_named_and_not_read() -> None:
    raw, t = np.array([1, 2], dtype="u1"), np.arange(2)
    formula = ChannelConversion(conversion_type=3, formula="X*__import__('os').getpid()")
    nested = ChannelConversion(conversion_type=7, ref_param_nr=2, val_0=1, text_0=b"one", default_addr=formula)
    with MDF(version="4.10") as mdf:
        conversions = {"f": formula, "g": nested, "v": None}
        mdf.append([Signal(raw, t, name=name, conversion=one) for name, one in conversions.items()], acq_name="Run")
        data = saved_mf4(mdf)
    (chunk,) = parse(Mf4(), data)
    assert chunk.records["channel"].to_list() == ["time", "v"]
    assert chunk.facts["file.notice"] == "Channels with a formula are not read: Run/f, Run/g."


def hdf5_file(build: Callable[[Any], object], **options: Any) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w", **options) as file:
        build(file)
    return out.getvalue()


def external_link(file: Any) -> None:
    file["away"] = h5py.ExternalLink("other.h5", "/x")


def link_through_a_link(file: Any) -> None:
    file["away"] = h5py.ExternalLink("other.h5", "/")
    file["soft"] = h5py.SoftLink("/away/x")


def external_storage(file: Any) -> None:
    file.create_dataset("away", (1,), dtype="f8", external=[("samples.bin", 0, 8)])


def virtual_dataset(file: Any) -> None:
    layout = h5py.VirtualLayout(shape=(1,), dtype="f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(1,))
    file.create_virtual_dataset("away", layout)


LINKED = "a: away is a link to another file, other.h5, which is not read. Copy the data into the file, or leave it out by select."
STORED = "a: the samples of away are in other files, which are not read. Copy the data into the file."


@pytest.mark.parametrize(
    ("build", "sentence"),
    [(external_link, LINKED), (link_through_a_link, LINKED), (external_storage, STORED), (virtual_dataset, STORED)],
)
def test_samples_of_other_files_are_refused_unless_they_are_not_selected(
    build: Callable[[Any], None], sentence: str
) -> None:
    def fill(file: Any) -> None:
        file["Run/a"] = [1.0]
        build(file)

    data = hdf5_file(fill)
    assert parser_sentence(Hdf5(), data) == sentence
    assert set(rows(parse(Hdf5(select="Run/*"), data))) == {"Run/a"}


def test_links_in_circles_end_and_links_in_the_file_are_followed() -> None:
    def build(file: Any) -> None:
        file["Run/a"] = [1.0]
        file["Run/self"] = file["Run"]
        file["Run/up"] = h5py.SoftLink("/")
        file["Run/first"] = h5py.SoftLink("second")
        file["Run/second"] = h5py.SoftLink("first")
        file["Run/nowhere"] = h5py.SoftLink("/no/such")
        file["latest"] = h5py.SoftLink("./Run")

    found = rows(parse(Hdf5(), hdf5_file(build)))
    assert set(found) == {"Run/a", "latest/a"}
    assert found["latest/a"]["first"] == "1.0"


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"userblock_size": 512}])
def test_an_hdf5_file_with_data_after_its_end_is_rejected(options: dict[str, Any]) -> None:
    data = hdf5_file(lambda file: file.create_dataset("a", data=[1]), **options)
    assert set(rows(parse(Hdf5(), data + bytes(100)))) == {"a"}
    assert parser_sentence(Hdf5(), data + data) == (
        "a has data after its end, such as another file that was appended. Drop each file alone."
    )


def test_a_file_with_too_many_paths_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(file: Any) -> None:
        group = file
        for _ in range(30):  # two names at each level are 2 to the power of 30 paths
            group["other"] = inner = group.create_group("one")
            group = inner

    monkeypatch.setattr(hdf5_reader, "OBJECTS", 500)
    assert parser_sentence(Hdf5(), hdf5_file(build)) == "a has more than 500 groups and datasets. Split it."


def test_text_of_matlab_is_text() -> None:
    def build(file: Any) -> None:
        file["label"] = np.array([[ord(letter)] for letter in "Rig B3"], dtype="u2")
        file["label"].attrs["MATLAB_class"] = np.bytes_("char")
        file["x"] = np.array([[1.0], [2.0]])
        file["#refs#/a"] = [1.0]

    found = rows(parse(Hdf5(), hdf5_file(build)))
    assert {key: row["first"] for key, row in found.items()} == {"label": "Rig B3", "x": "1.0"}


def damaged(data: bytes, step: int) -> list[bytes]:
    cut = [data[:end] for end in range(0, len(data), step)]
    turned = [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(0, len(data), step)]
    return cut + turned


def mat_file() -> bytes:
    return mat({}, {}, [("Run", "a", np.arange(20, dtype="f4"), {}), ("", "b", np.arange(20, dtype="f8"), {})])


def small(write: Callable[..., bytes]) -> bytes:
    values: npt.NDArray[Any] = np.arange(20, dtype="f4")
    return write(
        {"operator": "J. Doe"}, {"Run": {"rig": "B3"}}, [("Run", "a", values, {"unit": "V"}), ("Run", "b", values, {})]
    )


@pytest.mark.parametrize(
    ("file_format", "data", "step"),
    [(Tdms(), small(tdms), 9), (Hdf5(), small(hdf5), 101), (Mat(), mat_file(), 7), (Mf4(), mf4_file(MF4_GROUPS), 31)],
    ids=["tdms", "hdf5", "mat", "mf4"],
)
def test_a_damaged_file_gives_a_sentence_and_no_unforeseen_exception(
    file_format: MeasurementFormat, data: bytes, step: int
) -> None:
    sentences = [refusal(file_format, broken) for broken in damaged(data, step)]
    assert any(sentences)
    assert [sentence for sentence in sentences if "parser failed" in sentence] == []
    assert {sentence[:2] for sentence in sentences} <= {"a ", "a:", ""}


@pytest.mark.parametrize("file_format", [Tdms(), Hdf5(), Mat(), Mf4()], ids=lambda found: str(found.type))
def test_a_missing_library_is_named_and_no_file_is_rejected(file_format: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.sdk.formats.format.find_spec", lambda _: None)
    with pytest.raises(SourceUnavailable) as missing:
        read(file_format, b"")
    name = file_format.type
    assert str(missing.value) == (
        f"The format {name} needs the package ingestd[{name}], which is not installed: run pip install 'ingestd[{name}]'."
    )


def test_a_mat_file_of_version_7_3_names_the_format_that_reads_it() -> None:
    data = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512)
    assert parser_sentence(Mat(), data) == "a is a MAT file of version 7.3, which is HDF5. Set format: hdf5."


def test_cells_and_structures_of_several_elements_of_a_mat_file_are_left_out() -> None:
    out = io.BytesIO()
    cell = np.array([[1.0], "x"], dtype=object)
    several = np.array([(1.0,), (2.0,)], dtype=[("v", "f8")])
    savemat(out, {"cell": cell, "several": several, "kept": np.array([0.5])})
    assert set(rows(parse(Mat(), out.getvalue()))) == {"kept"}


@pytest.mark.parametrize("is_compressed", [False, True])
def test_strings_and_other_objects_of_a_mat_file_are_named_and_the_variables_are_read(is_compressed: bool) -> None:
    [*chunks] = parse(Mat(), mat_with_objects("label", "limits", is_compressed=is_compressed))
    assert set(rows(chunks)) == {"before", "kept"}
    assert chunks[-1].facts[NOTICE] == (
        "Objects of MATLAB are not read: label (string), limits (string). Save a string as char."
    )


def test_fields_of_a_compound_type_of_hdf5_are_channels_at_any_depth() -> None:
    inner = np.dtype([("x", ">f4"), ("y", "<i2")])
    table = np.array(
        [(1.5, (0.1, 7), (1, 2)), (2.5, (0.3, 9), (3, 4))], dtype=[("t", "<f8"), ("pos", inner), ("pair", "<i4", (2,))]
    )
    data = hdf5_file(lambda file: file.create_dataset("table", data=table))
    found = rows(parse(Hdf5(), data))
    assert {name: (row["count"], row["first"], row["last"]) for name, row in found.items()} == {
        "table/t": ("2", "1.5", "2.5"),
        "table/pos.x": ("2", "0.1", "0.3"),
        "table/pos.y": ("2", "7", "9"),
        "table/pair": ("4", "1", "4"),
    }
    samples = [row for one in parse(Hdf5(records="samples", select="table/pair"), data) for row in one.records.rows()]
    assert samples == [("table", str(number), str(number)) for number in (1, 2, 3, 4)]


def test_samples_of_hdf5_without_a_type_of_numpy_are_no_representations_of_python() -> None:
    def build(file: Any) -> None:
        file["opaque"] = np.array([b"abc", b"\xff\0\1"], dtype="V3")
        file["complex"] = np.array([1 + 2j, 1 - 2j])
        several = file.create_dataset("several", (1,), dtype=h5py.vlen_dtype(np.dtype([("p", "f4"), ("q", "i2")])))
        several[0] = np.array([(0.1, 2)], dtype=[("p", "f4"), ("q", "i2")])
        file["reference"] = np.array([file["opaque"].ref], dtype=h5py.ref_dtype)

    chunks = parse(Hdf5(), hdf5_file(build))
    assert {name: (row["first"], row["last"]) for name, row in rows(chunks).items()} == {
        "opaque": ("616263", "ff0001"),
        "complex": ("1.0+2.0j", "1.0-2.0j"),
        "several": ('[{"p": "0.1", "q": "2"}]', '[{"p": "0.1", "q": "2"}]'),
    }
    assert chunks[-1].facts[NOTICE] == "Not read, because they have no form as text: reference."
