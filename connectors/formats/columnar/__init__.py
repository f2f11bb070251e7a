"""Parquet and Arrow: files of typed columns, read as exact text."""

from connectors.formats.columnar.options import Arrow, Parquet
from connectors.formats.columnar.text import columns_as_text

__all__ = ["Arrow", "Parquet", "columns_as_text"]
