"""Cloud storage: files, their versions and metadata, and their conversion (contract, C1 to C9)."""
