"""Hides the package attr, which only tests need. rich would import it, which takes a twentieth of the start-up time."""

raise ImportError
