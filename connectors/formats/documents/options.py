"""YAML, TOML and INI as formats that can be configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import polars as pl
from pydantic import Field

from connectors.formats.documents.flat import flat
from connectors.formats.documents.parser import DocumentInvalid, Parser, parse_ini, parse_toml, parse_yaml
from connectors.formats.format import Format
from connectors.formats.frames import records_to_frame
from connectors.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation
from connectors.formats.text import DETECT, EncodingName, open_text
from ingestd.sdk import SourceBroken


class _Document(Format):
    """A file that is one record."""

    parser: ClassVar[Parser]
    delimiter_name: ClassVar[str]

    encoding: EncodingName = Field(default=DETECT, description="In which encoding the file is; as of csv.")

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """The file's only record, at position 1.

        Raises:
            SourceBroken: it is not of its format, or larger than a record may be.
        """
        opened = open_text(file, self.encoding)
        data = b""
        while piece := opened.read(RECORD_BYTES):
            data += piece
            if len(data) > RECORD_BYTES:
                raise SourceBroken(f"{name} is larger than {RECORD_BYTES} bytes, more than one record may be.")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise SourceBroken(
                f"{name} holds bytes that are not {opened.encoding.name.upper()}. Save it as UTF-8, or say in which encoding"
                " it is."
            ) from error
        try:
            record = flat(type(self).parser(text), name)
        except DocumentInvalid as error:
            raise SourceBroken(f"{name} can't be read as {self.delimiter_name}: {error}.") from error
        yield RecordChunk(
            records=records_to_frame([record], tuple(record)),
            positions=pl.Series("position", [1], dtype=pl.Int64),
            rejects=(),
            end=RecordLocation(offset=len(data), row=1),
            header=True,
            facts=opened.encoding.facts,
        )


class Yaml(_Document):
    """A YAML document: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".yaml", ".yml")
    parser: ClassVar[Parser] = staticmethod(parse_yaml)
    delimiter_name: ClassVar[str] = "YAML"

    type: Literal["yaml"] = "yaml"


class Toml(_Document):
    """A TOML document: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".toml",)
    parser: ClassVar[Parser] = staticmethod(parse_toml)
    delimiter_name: ClassVar[str] = "TOML"

    type: Literal["toml"] = "toml"


class Ini(_Document):
    """An INI file: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".ini", ".cfg")
    parser: ClassVar[Parser] = staticmethod(parse_ini)
    delimiter_name: ClassVar[str] = "INI"

    type: Literal["ini"] = "ini"
