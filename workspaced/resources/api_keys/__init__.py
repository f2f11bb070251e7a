"""API keys with their scopes, roles and grants, over HTTP (contract A1 to A6)."""
