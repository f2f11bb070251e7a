"""What a background process on a server needs, whatever it does: the notify socket, logs. Knows no domain."""
