"""The pytest plug-in of this distribution: the fixture ``mapping_case``.

pytest imports this module in every project of the environment, so other modules of ingestd are imported only for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ingestd.commands.mapping_test.pipeline_mapping import PipelineMapping


@pytest.fixture(scope="session")
def mapping_case(pytestconfig: pytest.Config) -> Callable[[str, str], PipelineMapping]:
    """Return a function that gets the path of a configuration and a pipeline's name, and returns the pipeline's mapping.

    The path is relative to pytest's root folder. No state file, service, secret or source is used. Call the mapping with a
    record, a list of records or the path of a file::

        def test_the_digits_of_a_mass_are_exact(mapping_case):
            mass_budget = mapping_case("ingestd.yaml", "mass-budget")
            result = mass_budget({"part_number": "00417", "mass_kg": "0.30"})
            assert result.entries == {"00417.mass": "0.30"}
            assert result.rejected == []
    """
    from ingestd.commands.mapping_test.pipeline_mapping import PipelineMapping  # noqa: PLC0415 - see above

    def read(config: str, pipeline: str) -> PipelineMapping:
        return PipelineMapping.read(pytestconfig.rootpath / config, pipeline)

    return read
