"""Parts of any background process on a server, such as the notify socket and logs. The package knows no domain."""
