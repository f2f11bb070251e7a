"""The control socket: commands send requests to the running daemon.

Only one process writes a state file; a lock enforces this. A command that changes the state while a daemon runs therefore
sends a request to the daemon, over a Unix socket beside the state file. Alternatives: a table of requests needs a second
writer and polling, and returns no result to the terminal. A TCP port needs an address and a secret in the configuration.

Only the daemon's account can connect (mode 0600). The log names the account of the peer, as reported by the kernel. A request
and its response are a line of JSON each.
"""
