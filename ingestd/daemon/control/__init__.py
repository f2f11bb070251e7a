"""How a command asks the daemon that holds the state file to do something.

One process writes a state file, and the lock beside it keeps it so. A command that changes something while a daemon runs
therefore asks that daemon, over a socket beside the state file, and hears what came of it. The other ways were weighed: a
table of requests would have a second process write to the file and the daemon poll for it or be sent a signal, and could
not tell the person who waits at a terminal what happened; a port would need an address and a secret in the configuration.

The socket belongs to the daemon's account alone (mode 0600), and who connects is asked of the kernel: that name stands in
the log. A request is a line of JSON, and so is its answer.
"""
