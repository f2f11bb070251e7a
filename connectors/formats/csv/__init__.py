"""CSV: text in rows under a header, as Python's csv module reads it, by columns where that is proven to be the same."""

from connectors.formats.csv.options import Csv
from connectors.formats.csv.reader import read_csv

__all__ = ["Csv", "read_csv"]
