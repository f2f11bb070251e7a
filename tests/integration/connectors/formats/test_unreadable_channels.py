"""Channels and texts of measurement files that can't be read: each of them is rejected or named, and none is changed silently."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import h5py
import numpy as np
import pytest
from asammdf import MDF, Signal
from scipy.io import savemat
from scipy.sparse import eye

from connectors.formats.hdf5 import Hdf5
from connectors.formats.mat import Mat
from connectors.formats.mf4 import Mf4
from connectors.formats.tdms import Tdms
from ingestd.sdk import NOTICE
from ingestd.sdk.formats import RecordChunk
from tests.support.format_records import located, parse, parser_sentence, rejects
from tests.support.measurement_files import mf4_file, saved_mf4, tdms

STRAY = "it holds bytes that are no UTF-8 text"
LEFT_OUT = "Not read, because they have no form as text: "
DEGREES = b"\xb0C"
"""A text in Windows-1252, as LabVIEW and many recorders write it."""


def hdf5(build: Callable[[Any], object]) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        build(file)
    return out.getvalue()


def tdms_channels(**properties: Mapping[str, Any]) -> bytes:
    """Return a TDMS file with a channel for each keyword, which has these properties."""
    return tdms({}, {}, [("Run", name, np.array([1, 2], dtype="i2"), own) for name, own in properties.items()])


def unreadable(chunks: Iterable[RecordChunk]) -> dict[str, tuple[int, ...] | None]:
    return {one.name: one.rows for chunk in chunks for one in chunk.unreadable}


def firsts(chunks: Iterable[RecordChunk]) -> dict[Any, str]:
    return {path: row["first"] for path, row in located(chunks)}


LINEAR = {"NI_Scale[0]_Linear_Slope": 2.0, "NI_Scale[0]_Linear_Y_Intercept": 1.0}


@pytest.mark.parametrize(
    ("scaling", "reason"),
    [
        ({"NI_Scale[0]_Scale_Type": "Reciprocal"}, "its scaling (Reciprocal) is not supported"),
        (
            {"NI_Scale[0]_Scale_Type": "Polynomial"},
            "its scaling has no property 'NI_Scale[0]_Polynomial_Coefficients[0]'",
        ),
    ],
)
def test_samples_of_tdms_that_can_not_be_scaled_are_rejected(scaling: Mapping[str, Any], reason: str) -> None:
    scaled = {**scaling, "NI_Scaling_Status": "scaled"}
    linear = {"NI_Number_Of_Scales": 1, "NI_Scale[0]_Scale_Type": "Linear", **LINEAR}
    data = tdms_channels(bad={"NI_Number_Of_Scales": 1, **scaling}, good=linear, already=scaled)
    chunks = parse(Tdms(), data)
    assert firsts(chunks) == {"Run/good": "3.0", "Run/already": "1"}
    assert rejects(chunks) == {"Run/bad": f"The channel can't be read: {reason}."}
    [chunk] = parse(Tdms(records="samples"), data)
    assert chunk.records.columns == ["group", "sample", "good", "already"]
    assert unreadable([chunk]) == {"bad": None}
    assert rejects(parse(Tdms(select="*/good"), data)) == {}


def test_a_tdms_file_without_a_whole_channel_is_rejected() -> None:
    data = tdms_channels(a={})
    for end in (4, 20, 40):
        assert parser_sentence(Tdms(), data[:end]) == "a is incomplete: it ends within its first segment."


def test_text_of_tdms_that_is_not_utf_8_is_unreadable_and_merges_no_channels() -> None:
    data = tdms_channels(a={"unit_string": "??C"}, b={"unit_string": "kg"}, xx1={}, yy1={})
    data = data.replace(b"??C", b"\xc2" + DEGREES[1:] + b"C").replace(b"xx1", b"\xe41x").replace(b"yy1", b"\xf61x")
    chunks = parse(Tdms(), data)
    assert [path for path, _ in located(chunks)] == ["Run/a", "Run/b", r"Run/\xe41x", r"Run/\xf61x"]
    assert unreadable(chunks) == {"property.unit_string": (0,), "channel": (2, 3)}
    assert {one.reason for chunk in chunks for one in chunk.unreadable} == {STRAY}


def test_text_of_hdf5_that_is_not_utf_8_is_unreadable() -> None:
    def build(file: Any) -> None:
        file["a"] = np.array([DEGREES, b"C", DEGREES], dtype="S2")
        file["b"] = [1]
        file["b"].attrs["unit"] = np.bytes_(DEGREES)

    data = hdf5(build)
    assert unreadable(parse(Hdf5(), data)) == {"first": (0,), "last": (0,), "property.unit": (1,)}
    [chunk] = parse(Hdf5(records="samples", select="a"), data)
    assert chunk.records["a"].to_list() == [None, "C", None]
    assert unreadable([chunk]) == {"a": (0, 2)}
    assert unreadable(parse(Hdf5(records="properties"), data)) == {"value": (0,)}


def test_text_of_mf4_that_is_not_utf_8_is_unreadable_and_not_guessed() -> None:
    with MDF(version="4.10") as mdf:
        samples = np.array([DEGREES, b"C"])
        mdf.append([Signal(samples, np.arange(2), name="a", unit="???m", encoding="utf-8")], acq_name="Run")
        data = saved_mf4(mdf).replace(b"???m", b"\xb5m\0\0")
    chunks = parse(Mf4(select="*/a"), data)
    assert unreadable(chunks) == {"first": (0,), "property.unit": (0,)}


def links(file: Any) -> None:
    file["Run/a"] = [1.0]
    file["Run/first"] = h5py.SoftLink("second")
    file["Run/second"] = h5py.SoftLink("first")
    file["Run/nowhere"] = h5py.SoftLink("/no/such")
    stamp = h5py.h5s.create_simple((2,))
    h5py.h5d.create(file.id, b"stamp", h5py.h5t.UNIX_D32LE, stamp)


def test_links_to_nothing_and_types_without_equivalent_are_rejected_with_the_channel() -> None:
    data = hdf5(links)
    chunks = parse(Hdf5(), data)
    nothing = "The channel can't be read: it is a link to nothing."
    assert firsts(chunks) == {"Run/a": "1.0"}
    assert rejects(chunks) == {
        **dict.fromkeys(("Run/first", "Run/nowhere", "Run/second"), nothing),
        "stamp": "The channel can't be read: its type has no equivalent in NumPy.",
    }
    assert rejects(parse(Hdf5(select="Run/nowhere/x"), data)) == {"Run/nowhere": nothing}
    assert rejects(parse(Hdf5(select="Run/a"), data)) == {}
    assert rejects(parse(Hdf5(records="properties", select="Run/n*"), data)) == {"Run/nowhere": nothing}
    assert unreadable(parse(Hdf5(records="samples", select="Run/n*"), data)) == {"nowhere": None}


def test_groups_below_the_limit_of_levels_are_not_left_out_silently() -> None:
    data = hdf5(lambda file: file.create_dataset("/".join("a" * 101), data=[1]))
    assert parser_sentence(Hdf5(), data) == "a has groups that are nested more than 100 deep. Split it."


def test_attributes_of_hdf5_without_text_are_named() -> None:
    def build(file: Any) -> None:
        file["a"] = [1]
        file["a"].attrs.update({"many": np.arange(1_001), "pair": np.array((1, 2.0), dtype="i4,f8"), "unit": "m"})
        file["b"] = [1]

    data = hdf5(build)
    assert parse(Hdf5(), data)[-1].facts[NOTICE] == f"{LEFT_OUT}a@many, a@pair."
    assert NOTICE not in parse(Hdf5(select="b"), data)[-1].facts


def test_samples_that_need_a_missing_filter_name_their_channel() -> None:
    def build(file: Any) -> None:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((2,))
        settings.set_filter(300, h5py.h5z.FLAG_OPTIONAL, ())
        space, kind = h5py.h5s.create_simple((2,)), h5py.h5t.NATIVE_INT32
        stored = h5py.h5d.create(file.id, b"packed", kind, space, settings)
        stored.write_direct_chunk((0,), b"12345678")

    assert parser_sentence(Hdf5(), hdf5(build)).startswith("a can't be read as HDF5: /packed can't be read (")


def test_what_a_mat_file_has_and_is_not_read_is_named() -> None:
    out = io.BytesIO()
    cell, several = np.array([[1.0], "x"], dtype=object), np.array([(1.0,), (2.0,)], dtype=[("v", "f8")])
    savemat(out, {"cell": cell, "several": several, "sparse": eye(2), "s": {"kept": 0.5, "inner": cell}})
    chunks = parse(Mat(), out.getvalue())
    assert firsts(chunks) == {"s/kept": "0.5"}
    assert chunks[-1].facts[NOTICE] == f"{LEFT_OUT}cell, several, sparse, s/inner."


def test_text_of_a_mat_file_that_is_not_utf_8_is_unreadable() -> None:
    out = io.BytesIO()
    savemat(out, {"a": np.array(["??C", "K  "]), "b": "\xb0C"})
    data = out.getvalue()
    assert firsts(parse(Mat(), data)) == {"a": "??C", "b": "\xb0C"}
    by_column = b"?K? C "
    assert data.count(by_column) == 1
    assert unreadable(parse(Mat(), data.replace(by_column, b"\xb0K? C "))) == {"first": (0,)}


@pytest.mark.parametrize("version", ["4", "5"])
def test_a_mat_file_with_two_variables_of_a_name_is_rejected(version: Any) -> None:
    parts = [io.BytesIO(), io.BytesIO()]
    for value, part in enumerate(parts):
        savemat(part, {"x": np.array([float(value)])}, format=version)
    first, second = (part.getvalue() for part in parts)
    assert parser_sentence(Mat(), first + (second if version == "4" else second[128:])) == (
        "a has several variables of the name 'x', so it is unclear which one counts."
    )


def test_members_of_arrays_of_mf4_are_channels_and_raw_bytes_are_named() -> None:
    t = np.arange(2)
    pair = np.array([(1, 2), (3, 4)], dtype=[("x", "i4"), ("y", "i4")])
    matrix = np.rec.fromarrays([np.arange(8.0).reshape(2, 2, 2)], dtype=np.dtype([("m", "f8", (2, 2))]))
    with MDF(version="4.10") as mdf:
        signals = {"raw": np.ones((2, 3), dtype="u1"), "pair": pair, "m": matrix}
        mdf.append([Signal(samples, t, name=name) for name, samples in signals.items()], acq_name="Run")
        data = saved_mf4(mdf)
    chunks = parse(Mf4(select="Run/[!t]*"), data)
    assert firsts(chunks) == {
        "Run/x": "1", "Run/y": "2", "Run/m[0][0]": "0.0", "Run/m[0][1]": "1.0", "Run/m[1][0]": "2.0", "Run/m[1][1]": "3.0",
    }  # fmt: skip
    assert chunks[-1].facts[NOTICE] == f"{LEFT_OUT}Run/raw."


def test_a_channel_of_mf4_that_the_library_leaves_out_rejects_the_file() -> None:
    data = bytearray(mf4_file({"Run": {"a": np.array([1.0]), "b": np.array([2.0])}}))
    channel = data.index(b"##CN")
    struct.pack_into("<Q", data, channel + 24, len(data) * 2)
    assert parser_sentence(Mf4(), bytes(data)).startswith("a can't be read as MF4: Channel address ")


def test_samples_of_mf4_with_a_damaged_conversion_are_not_read_without_it() -> None:
    with MDF(version="4.10") as mdf:
        mdf.append([Signal(np.arange(2), np.arange(2), name="a", conversion={"a": 0.5, "b": 1})], acq_name="Run")
        data = saved_mf4(mdf)
    assert data.count(b"##CC") == 1
    assert parser_sentence(Mf4(), data.replace(b"##CC", b"##XX")) == (
        "a can't be read as MF4: Channel conversion parsing error. It is damaged, incomplete or of another format."
    )


def test_a_channel_of_mf4_with_an_unknown_type_rejects_the_file() -> None:
    data = bytearray(mf4_file({"Run": {"a": np.array([1.0]), "b": np.array([2.0])}}))
    data[data.rindex(b"##CN") + 24 + 8 * 8 + 2] = 17  # a string with a byte order mark, which version 4.3 has
    assert "a channel has the data type 17, which is not known" in parser_sentence(Mf4(), bytes(data))


def test_a_channel_of_mf4_beyond_the_end_of_its_records_rejects_the_file() -> None:
    data = bytearray(mf4_file({"Run": {"a": np.array([1.0]), "b": np.array([2.0])}}))
    channel = data.rindex(b"##CN")
    struct.pack_into("<I", data, channel + 24 + 8 * 8 + 4, 12)
    assert "Channel b byte offset too high" in parser_sentence(Mf4(), bytes(data))
