"""Where the bytes of files are kept, by their SHA-256: one seam (`port`), a folder behind it (`disk`)."""
