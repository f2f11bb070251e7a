"""Where the service keeps what it knows: one seam (`port`), SQLite behind it."""
