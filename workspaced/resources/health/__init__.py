"""Health checks of the process and of the service."""
