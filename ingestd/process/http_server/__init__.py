"""The HTTP server of every listener: uvicorn, with limits of sizes, times and connections.

uvicorn has no time limit for a head, a body or the reading of a response. Its connection limit also refuses honest clients.
`connection` wraps uvicorn's asyncio protocol. `registry` limits a listener's connections. `requests` wraps the listener's ASGI
application. `tls` adds TLS to a connection.
"""
