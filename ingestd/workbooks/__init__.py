"""Workbooks (xlsx, xlsm, xlsb, xls, ods) as texts. Connectors and the service read workbooks with this package."""
