"""The listener of `ingestd run`: metrics, health and the page, if ``listen`` is configured.

`server` accepts connections and bounds them, `access` decides which requests are accepted, and `application` finds the handler of
a path. Handlers return values; they read through the functions that the commands use.
"""
