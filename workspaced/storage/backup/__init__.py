"""A backup of all stored data, made while the service runs: first the records, then the bytes that they name."""
