"""Cloud storage: files, their versions and metadata, and their conversion (contract C1, C2, C6, C8, C9)."""
