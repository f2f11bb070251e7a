"""Readiness rules: all configured rules must be met before a file is read. `registry` lists the rules."""
