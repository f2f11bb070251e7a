"""From an address to answers: one process, or several under a parent; and the listener for those who run the service."""
