"""CSV: rows of text under a header, read as Python's csv module reads them."""

from connectors.formats.csv.options import Csv
from connectors.formats.csv.reader import read_csv

__all__ = ["Csv", "read_csv"]
