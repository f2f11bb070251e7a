"""The control socket: commands send requests to the running daemon.

Only one process writes a state file; a lock enforces this. While a daemon runs, a command that changes the state sends
a request to the daemon, over a Unix socket in the folder of the state file. Rejected alternatives: a table of requests
needs a second writer and polling, and returns no result to the terminal. A TCP port needs a configured address and secret.

Only the daemon's account can connect (mode 0600). The log names the peer's account, which the kernel reports. Each request
and each response is one line of JSON.
"""
