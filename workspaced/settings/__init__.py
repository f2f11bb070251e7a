"""The settings of the service, and how they are read from environment variables."""
