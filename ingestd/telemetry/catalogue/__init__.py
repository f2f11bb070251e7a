"""All events of the daemon, by the package that emits them."""
