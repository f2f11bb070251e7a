"""API keys with their scopes, roles and grants, over HTTP (contract A1, A2, A3, A4, A5, A6)."""
