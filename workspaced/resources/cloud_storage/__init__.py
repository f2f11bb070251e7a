"""Cloud storage: files, versions, metadata, conversions (contract C1, C2, C6, C8, C9)."""
