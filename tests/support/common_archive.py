"""A process that archives the files of a drop folder: ``python -m tests.support.common_archive BASE DROP RECEIPT``.

It reads all files, prints a line, and waits for a line on its input. Then it archives the files in ``BASE/done``, while other
processes archive files there, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import SourceContext
from ingestd.sdk.testing import acknowledgement

TOGETHER = 5


def main() -> None:
    base, drop, receipt = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "receipt"
    options = DirectoryOptions(
        path=Path(drop), settle_seconds=0, after="archive", archive=Path("done"), receipt=receipt
    )
    connector = DirectoryConnector(options, SourceContext(pipeline=drop, base=base, now=lambda: 4e9))
    read = [(one, list(connector.read(one, None))[-1].cursor, acknowledgement()) for one in connector.partitions()]
    print("read", flush=True)  # noqa: T201
    sys.stdin.readline()
    failures = []
    for start in range(0, len(read), TOGETHER):
        failures += [one for one in connector.acknowledge_together(read[start : start + TOGETHER]) if one is not None]
    print(failures)  # noqa: T201


if __name__ == "__main__":
    main()
