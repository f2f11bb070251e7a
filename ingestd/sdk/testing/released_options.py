"""The suite of former options: a configuration that a release accepted still loads.

A package has a JSON file with examples of options by release, ``{"0.1.0": [{"path": "values.txt"}, …]}``. An entry is never
edited after its release.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import ClassVar

from pydantic import ValidationError

from ingestd.sdk.connector import Connector, SourceContext
from ingestd.sdk.testing.source_reader import check


class OptionsConformance:
    """Subclass this class in a test module and set ``connector`` and ``released_options``, the path of the JSON file."""

    connector: ClassVar[type[Connector]]
    released_options: ClassVar[Path]

    def test_options_of_former_releases_still_load(self) -> None:
        """After an upgrade, a configuration that worked must not be refused."""
        check_released_options(self.connector, self.released_options)


def check_released_options(connector: type[Connector], path: Path) -> None:
    """Fail if an example of the file is refused by the present ``Options``, or if no connector can be made of it."""
    recorded = json.loads(path.read_text(encoding="utf-8"))
    check(recorded and all(recorded.values()), f"{path.name} has no examples. Record some for each release.")
    with tempfile.TemporaryDirectory() as folder:
        for release, examples in recorded.items():
            for number, example in enumerate(examples, start=1):
                _check_loads(connector, example, Path(folder), f"Example {number} of release {release} in {path.name}")


def _check_loads(connector: type[Connector], example: object, base: Path, name: str) -> None:
    try:
        options = connector.Options.model_validate(example)
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise AssertionError(f"{name} is refused by {connector.Options.__name__}: {reasons}.") from error
    try:
        connector.claims(options, base)
        connector.schedule_refusal(options)
        connector(options, SourceContext(pipeline="kit", base=base, now=time.time, kept_folder=base)).close()
    except Exception as error:
        raise AssertionError(f"{name} is accepted, but no connector can be made of it: {error!r}.") from error
