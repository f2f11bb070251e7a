"""The state file: opened, locked, examined, copied, and compared with what the service has received."""
