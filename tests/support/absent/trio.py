"""Hides the package trio, which only browser tests need. httpcore would import it, a tenth of the start-up time."""

raise ImportError
