"""The daemon put together: wiring, life cycle, signals, and what its commands do. The only package that knows every other."""
