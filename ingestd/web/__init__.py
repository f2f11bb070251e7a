"""The listener of `ingestd run`: metrics, health and the pages, if ``listen`` is configured.

`server` accepts connections and limits them, `access` decides which requests are accepted, and `application` finds the handler
of a path. Handlers return values, and read with the same functions as the commands.
"""
