"""CSV: rows of text under a header, read as Python's csv module reads them."""

from connectors.formats.csv.options import Csv

__all__ = ["Csv"]
