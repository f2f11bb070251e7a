"""Wiring, lifecycle, signals and commands of the daemon. The only package that imports all others."""
