"""Every event the daemon can emit, by the part of the house that emits it."""
