"""Storage of the bytes of files, by their SHA-256: one interface (`port`), implemented by a folder (`disk`)."""
