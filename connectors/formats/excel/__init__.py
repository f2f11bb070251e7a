"""Spreadsheets: xlsx, xlsm, xlsb, xls and ods, a sheet of them as rows under a header."""

from connectors.formats.excel.options import Excel

__all__ = ["Excel"]
