"""The first configuration of a user: its text, and the facts for it from a sample file or a table."""
