"""What a background process on a server needs, whatever it does: the service manager's socket, logs. Knows no domain."""
