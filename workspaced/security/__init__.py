"""Keys, permissions, rate limits, the audit log, sealed secrets, trusted proxies and outgoing connections."""
