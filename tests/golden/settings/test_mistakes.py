from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.settings.loader import load_settings
from tests.support.sample_connectors import options_of

HERE = Path(__file__).parent
ENVIRONMENT = {"INGESTD_API_KEY": "k-1", "RETRIES": "-1", "RIG_URL": "hunter22", "INGESTD_CLIENTS": "x"}


def test_a_file_full_of_mistakes_is_reported_in_exactly_these_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(Path("broken.yaml"), options_of=options_of, environment=ENVIRONMENT)
    assert len(caught.value.mistakes) > 15
    assert str(caught.value) + "\n" == (HERE / "broken.txt").read_text()
