"""The resources of the API: each has routes, rules, a store, records, and a section of the API description."""
