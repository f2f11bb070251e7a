"""The HTTP server of every listener: uvicorn, with bounds on size, time and number around its protocol.

uvicorn has no time limit for a head, a body or the reading of a response, and no limit of connections that admits honest clients.
`connection` is an asyncio protocol around uvicorn's, `registry` the connections of a listener, `requests` an ASGI application
around the listener's own.
"""
