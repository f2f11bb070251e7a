"""Parquet and Arrow: files of typed columns, as text that says exactly what they hold."""

from connectors.formats.columnar.options import Arrow, Parquet
from connectors.formats.columnar.text import as_text

__all__ = ["Arrow", "Parquet", "as_text"]
