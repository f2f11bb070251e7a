"""What the commands do beside the running daemon, or without it. Only `ingestd.cli` imports this package."""
