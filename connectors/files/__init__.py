"""Parts shared by the connectors that read files: identity, stability, and batches of one file."""
