"""The resources of the API. Each has routes, rules, a store, records and an API section."""
