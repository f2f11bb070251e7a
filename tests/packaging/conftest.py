"""The wheel of the project, built once for the modules that install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clean_environment import build_wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))
