"""YAML, TOML and INI: formats of small documents. Each document is one record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from pydantic import Field

from connectors.formats.documents.ini import parse_ini
from connectors.formats.documents.parser import DocumentInvalid, Parser, flatten, parse_toml, parse_yaml
from connectors.formats.frames import records_to_frame
from connectors.formats.name_limit import NamesTooLong
from connectors.formats.text import DETECT, EncodingName, open_text
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import RECORD_BYTES, RecordChunk, RecordLocation, row_positions


class _Document(Format):
    """A file that is one record."""

    parser: ClassVar[Parser]
    label: ClassVar[str]

    encoding: EncodingName = Field(default=DETECT, description="The encoding of the file; as for csv.")

    def read(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """Yield the file's only record, at position 1.

        Raises:
            SourceBroken: the file is not of its format, or larger than the limit for a record.
        """
        opened = open_text(file, self.encoding)
        data = b""
        while piece := opened.read(RECORD_BYTES):
            data += piece
            if len(data) > RECORD_BYTES:
                raise SourceBroken(f"{name} is larger than {RECORD_BYTES} bytes, the limit for a record.")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise SourceBroken(
                f"{name} holds bytes that are not {opened.encoding.name.upper()}. Save it as UTF-8, or set encoding."
            ) from error
        if "\n\ufeff" in text:
            line = text.count("\n", 0, text.index("\n\ufeff")) + 2
            raise SourceBroken(
                f"{name} has a byte order mark in line {line}, because another file was appended there. Drop each file alone."
            )
        try:
            record = flatten(type(self).parser(text), name, len(text))
        except DocumentInvalid as error:
            raise SourceBroken(f"{name} can't be read as {self.label}: {error}.") from error
        except NamesTooLong as error:
            raise SourceBroken(f"{name} {error}.") from error
        except RecursionError as error:
            raise SourceBroken(f"{name} can't be read as {self.label}: it is nested too deeply.") from error
        yield RecordChunk(
            records=records_to_frame([record], tuple(record)),
            positions=row_positions([1]),
            end=RecordLocation(offset=len(data), row=1),
            header=True,
            facts=opened.facts,
        )


class Yaml(_Document):
    """A YAML document: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".yaml", ".yml")
    parser: ClassVar[Parser] = staticmethod(parse_yaml)
    label: ClassVar[str] = "YAML"

    type: Literal["yaml"] = "yaml"


class Toml(_Document):
    """A TOML document: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".toml",)
    parser: ClassVar[Parser] = staticmethod(parse_toml)
    label: ClassVar[str] = "TOML"

    type: Literal["toml"] = "toml"


class Ini(_Document):
    """An INI file: one record."""

    suffixes: ClassVar[tuple[str, ...]] = (".ini", ".cfg")
    parser: ClassVar[Parser] = staticmethod(parse_ini)
    label: ClassVar[str] = "INI"

    type: Literal["ini"] = "ini"
