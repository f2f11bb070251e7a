"""The configuration file: its model, loading, mistakes with their location, and its JSON Schema."""
