"""Parquet and Arrow: files of typed columns, read as exact text."""

from connectors.formats.columnar.options import Arrow, Parquet

__all__ = ["Arrow", "Parquet"]
