"""The documentation site: hand-written pages, and reference pages that are generated from the code."""
