"""The first configuration of a user: its text, and what is found in a sample file or a table for it."""
