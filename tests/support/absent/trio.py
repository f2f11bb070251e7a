"""Installed for the tests of browsers only: httpcore imports it if it can, which takes a tenth of a start."""

raise ImportError
