"""The resources of the API. Each has routes, rules, a store, records, and a section of the API description."""
