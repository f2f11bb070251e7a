"""One active daemon for a configuration, and standbys that take over from its shipped state. Imported only with `--standby`."""
