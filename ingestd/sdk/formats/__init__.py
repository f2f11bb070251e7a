"""File formats: each format reads an open file as chunks of records, with exact text and limited memory.

A package outside the project adds a format with a subclass of `Format` and an entry point of the group ``ingestd.formats``::

    class StatusLines(Format):
        '''Lines of the form ``name = value``.'''
        suffixes = (".status",)
        type: Literal["status"] = "status"
        def read(self, file, name):
            pairs = [line.split("=") for line in file.read().decode().splitlines()]
            columns = {"name": [name.strip() for name, _ in pairs], "value": [value.strip() for _, value in pairs]}
            yield RecordChunk(records=pl.DataFrame(columns, schema={"name": pl.String, "value": pl.String}),
                              positions=row_positions(range(1, len(pairs) + 1)), end=RecordLocation(row=len(pairs)))

A pipeline selects this format by ``format: status``. The formats of the project use the same entry points. If a format's parser
is not safe for damaged files, the format derives from `IsolatedFormat`, and is parsed in a child process with limits.

If another part of the file, such as a footer, states the number of records, the format returns it as `RecordChunk.total`. If a
different number of records is read, the file is rejected. `ingestd.sdk.testing.FormatConformance` tests a format.

A connector can have an option of the type `FormatSetting`, and decode bytes in the selected format by `decode`.
"""

from ingestd.sdk.formats.decoder import broken_instead_of_failed, decode
from ingestd.sdk.formats.format import FORMAT_CONTRACT, Format, IsolatedFormat
from ingestd.sdk.formats.installed import FormatSetting, configured_format, format_class, format_names
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, check_count, row_positions

__all__ = [
    "FORMAT_CONTRACT",
    "Format",
    "FormatSetting",
    "IsolatedFormat",
    "RecordChunk",
    "RecordLocation",
    "broken_instead_of_failed",
    "check_count",
    "configured_format",
    "decode",
    "format_class",
    "format_names",
    "row_positions",
]
