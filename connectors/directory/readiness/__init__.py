"""Readiness: rules that must all be met before a file is read. `registry` lists them."""
