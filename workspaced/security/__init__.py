"""API keys, permissions, rate limits, the audit log, encrypted secrets, trusted proxies and outgoing connections."""
