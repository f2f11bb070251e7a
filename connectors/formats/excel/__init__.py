"""Spreadsheets (xlsx, xlsm, xlsb, xls and ods): one sheet is read as rows under a header."""

from connectors.formats.excel.options import Excel

__all__ = ["Excel"]
