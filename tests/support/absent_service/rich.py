"""Installed for the daemon only: structlog imports it if it can, which takes a tenth of a start of the service."""

raise ImportError
