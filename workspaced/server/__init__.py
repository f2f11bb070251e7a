"""The HTTP server of the service, and the operators' listener."""
