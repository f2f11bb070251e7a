"""Modules without domain logic that any background process on a server can use, such as the notify socket and logs."""
