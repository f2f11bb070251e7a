"""The state file: opened, locked, examined, copied, and compared with the requests that the service has received."""
