"""The page on file formats names every format, every suffix and every setting."""

from pathlib import Path

from connectors.formats.compression import PACKED_SUFFIXES
from connectors.formats.registry import SUFFIXES
from ingestd.sdk.formats import format_class, format_names

FORMATS = [format_class(name) for name in format_names()]
PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_every_format_and_every_suffix_is_on_the_page() -> None:
    for kind in FORMATS:
        assert f"`{kind.model_fields['type'].default}`" in PAGE
    for suffix in [suffix for kind in FORMATS for suffix in kind.suffixes] + list(PACKED_SUFFIXES):
        assert suffix in PAGE


def test_every_setting_of_a_format_is_on_the_page() -> None:
    settings = {name for kind in FORMATS for name in kind.model_fields} - {"type"}
    assert {name for name in settings if f"`{name}" not in PAGE} == set()


def test_the_suffixes_that_select_a_format_are_those_of_its_class() -> None:
    assert {suffix: str(kind.model_fields["type"].default) for kind in FORMATS for suffix in kind.suffixes} == SUFFIXES
