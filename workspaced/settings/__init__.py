"""What can be set about the service, and how the environment sets it."""
