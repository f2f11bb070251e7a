"""The page about delivery has the table of outcomes of the code. INGESTD_WRITE_GOLDEN=1 rewrites it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ingestd.core.outcome_table import outcome_table
from ingestd.settings.service import ServiceSettings

PAGE = Path(__file__).parents[2] / "docs" / "delivery.md"
BLOCK = re.compile(r"(?<=<!-- outcomes: begin -->\n).*?(?=<!-- outcomes: end -->)", re.DOTALL)


def test_the_table_of_outcomes_is_that_of_the_code() -> None:
    # contract M7
    text = PAGE.read_text(encoding="utf-8")
    table = outcome_table() + "\n"
    if os.environ.get("INGESTD_WRITE_GOLDEN"):
        PAGE.write_text(BLOCK.sub(lambda _: table, text), encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
    found = BLOCK.search(text)
    assert found is not None
    assert found[0] == table


def test_every_setting_named_on_the_page_exists() -> None:
    named = set(re.findall(r"`([a-z_]+)(?:: [a-z]+)?`", PAGE.read_text(encoding="utf-8")))
    assert {"requests_at_most", "missing_sink", "compress", "gather_seconds"} <= named & set(
        ServiceSettings.model_fields
    )
