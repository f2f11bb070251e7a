"""Who may do what: API keys, scopes, roles and grants (contract A1, A2, A3, A4, A5, A6)."""
