"""The mapping of a pipeline as a function of records, for tests in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

import msgspec

from ingestd.commands.mapping_test.case_file import MappingCase
from ingestd.commands.mapping_test.case_run import map_case
from ingestd.commands.mapping_test.sample import read_sample
from ingestd.core.errors import SourceBroken
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.daemon.configuration import Configuration, chosen_pipelines, read_configuration

TextRecord: TypeAlias = Mapping[str, str | None]


class MappedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of some records: value by key, data type by key; and position and reason of each rejected record."""

    entries: dict[str, str]
    types: dict[str, str]
    rejected: list[tuple[str, str]]


class PipelineMapping:
    """The mapping of one pipeline; `read` creates it."""

    def __init__(self, configuration: Configuration, name: str) -> None:
        self._pipeline = next(one for one in configuration.settings.pipelines if one.name == name)
        self._sample = partial(read_sample, configuration, self._pipeline)
        self._mapping = EntryMapping(self._pipeline.entries)
        self._groups = Aggregation(self._pipeline.group) if self._pipeline.group is not None else None

    @classmethod
    def read(cls, config: Path, pipeline: str) -> Self:
        """Read a configuration without its secrets.

        Raises:
            ConfigurationError: the configuration has mistakes.
            PipelineUnknown: the configuration does not have the pipeline.
        """
        configuration = read_configuration(config, environment=os.environ, cwd=config.parent, secrets=False)
        (name,) = chosen_pipelines(configuration, [pipeline])
        return cls(configuration, name)

    def __call__(
        self, source: TextRecord | Sequence[TextRecord] | str | Path, *, facts: Mapping[str, str] | None = None
    ) -> MappedRecords:
        """Map a record, several records, or the file at a path, which is read like a file of the source.

        Values are texts or None, as a source reads them. ``facts``: the facts that the mapping uses, such as ``file.stem``.

        Raises:
            TypeError: a value is no text.
            SourceBroken: the records or the file are rejected as a whole, for example because a column is missing.
        """
        rows: tuple[TextRecord, ...] | None = None
        sample: Path | None = None
        match source:
            case str() | Path():
                sample = Path(source)
            case Mapping():
                rows = (source,)
            case _:
                rows = tuple(source)
        for name, value in (pair for row in rows or () for pair in row.items()):
            if value is not None and not isinstance(value, str):
                raise TypeError(
                    f"The field {name!r} is of the type {type(value).__name__}. Write the text that the source has, such as "
                    f"{str(value)!r}."
                )
        case = MappingCase(
            file=Path(), line=0, name="", pipeline=self._pipeline.name, rows=rows, columns=None, sample=sample,
            facts=facts or {}, entries=(), rejected=(), broken=None, partial=True,
        )  # fmt: skip
        output = map_case(case, mapping=self._mapping, sample=self._sample, groups=self._groups)
        if output.broken is not None:
            raise SourceBroken(output.broken)
        return MappedRecords(
            entries={key: value for key, (value, _) in output.entries.items()},
            types={key: data_type for key, (_, data_type) in output.entries.items()},
            rejected=output.rejects,
        )
