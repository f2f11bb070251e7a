"""The conformance suite for file formats."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
import polars as pl
from msgspec.structs import replace

from ingestd.core.errors import SourceBroken
from ingestd.sdk.formats import Format, RecordChunk, check_count
from ingestd.sdk.testing.source_reader import check

_CUTS = 20


class FormatSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample file. ``records``: its number of records, including rejected records; count them without the tested format."""

    format: Format
    name: str
    content: bytes
    records: int

    def read(self, content: bytes | None = None) -> Sequence[RecordChunk]:
        """Return the chunks of the file, or of other content.

        Raises:
            SourceBroken: the content can't be read, or states a number of records that it does not have.
        """
        chunks = list(self.format.read(io.BytesIO(self.content if content is None else content), self.name))
        _checked(chunks, self.name)
        return chunks


class FormatConformance:
    """Subclass this class in a test module and define a fixture ``sample``, a `FormatSample`; pytest runs the tests."""

    def test_the_sample_has_exactly_its_records(self, sample: FormatSample) -> None:
        """A record that is neither read nor rejected is lost."""
        count = _count(sample.read())
        check(count == sample.records, f"The sample has {sample.records} records, and {count} were read.")

    def test_every_chunk_has_a_position_for_each_record_and_only_text(self, sample: FormatSample) -> None:
        """The mapping works on text only, and people find a record by its position."""
        chunks = sample.read()
        check(bool(chunks), "The format yielded no chunk.")
        for chunk in chunks:
            check(set(chunk.records.dtypes) <= {pl.String}, "A column is not pl.String.")
            check(chunk.positions.len() == chunk.records.height, "A chunk has not one position for each record.")
            check(chunk.total == chunks[0].total, "Two chunks state another total.")

    def test_a_reading_with_fewer_records_than_the_file_states_is_rejected(self, sample: FormatSample) -> None:
        """If another part of the file states the number of records, the format must return this number."""
        chunks = sample.read()
        if chunks[0].total is None:
            return  # such a file does not state its number of records
        *others, last = chunks
        fewer = [*others, replace(last, records=last.records[:-1], positions=last.positions[:-1])]
        try:
            _checked(fewer, sample.name)
        except SourceBroken:
            return
        check(condition=False, sentence="A reading without the last record is not rejected.")

    def test_a_cut_file_is_rejected_or_has_no_other_number_of_records_than_it_states(
        self, sample: FormatSample
    ) -> None:
        """A file is often read while a program still writes it, or after its transfer was interrupted."""
        for cut in range(_CUTS):
            size = len(sample.content) * cut // _CUTS
            try:
                count = _count(sample.read(sample.content[:size]))
            except SourceBroken:
                continue
            check(count <= sample.records, f"The first {size} bytes have {count} records, more than the whole file.")


def _checked(chunks: Sequence[RecordChunk], name: str) -> None:
    for _ in check_count(iter(chunks), name):
        pass


def _count(chunks: Sequence[RecordChunk]) -> int:
    return sum(chunk.records.height + len(chunk.rejects) for chunk in chunks)
