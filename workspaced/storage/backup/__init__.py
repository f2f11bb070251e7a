"""A copy of all that the service remembers, made while it runs: the records first, then the bytes that they name."""
