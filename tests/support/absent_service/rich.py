"""Hides the package rich, which only the daemon needs. structlog would import it, a tenth of the service's start-up time."""

raise ImportError
