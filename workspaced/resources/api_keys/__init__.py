"""Who may do what: API keys, scopes, roles and grants (contract, A1 to A6)."""
