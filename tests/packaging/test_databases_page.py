"""The page on databases names every setting of the connector that it describes, with its default."""

from pathlib import Path

from connectors.database import DatabaseOptions

PAGE = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
IN_THE_CONFIGURATION = {"query", "mode", "cursor", "key", "deletes", "url"}  # config/ingestd.yaml describes them


def test_every_setting_of_values_and_limits_is_on_the_page() -> None:
    settings = set(DatabaseOptions.model_fields) - IN_THE_CONFIGURATION
    assert {name for name in settings if f"`{name}`" not in PAGE} == set()


def test_every_value_of_a_setting_of_values_is_on_the_page() -> None:
    schema = DatabaseOptions.model_json_schema()["properties"]
    for name in ("binary", "char_padding", "money", "nan"):
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        assert {value for value in schema[name]["enum"] if f"`{value}`" not in line} == set()
