"""Construction, lifecycle, signals and commands of the daemon. Connects intake, delivery, standby and mirror."""
