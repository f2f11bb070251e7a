"""Parts that any background process on a server can use, such as the notify socket and logs; no domain logic."""
