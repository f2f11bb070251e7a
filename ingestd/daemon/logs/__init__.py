"""The log of the daemon, read from where it is collected: a file with its rotated files, or the journal of systemd."""
