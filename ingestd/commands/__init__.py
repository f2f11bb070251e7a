"""The logic of the commands, for `ingestd.cli`, the pages of `ingestd.web`, and Python programs."""
