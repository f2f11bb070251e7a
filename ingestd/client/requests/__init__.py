"""Every call of the service as a value: a function an operation and form, which sends nothing.

``Client`` and ``AsyncClient`` have a method of nearly each function; ``client.send(request)`` does the same with the value.

What holds for all: ids of sinks are UUIDs or visible ids (``SNK-1``). A member that is not given (``UNSET``) is not sent and
stays as it is; None unsets it. ``if_match`` lets a change through only on that version (an ``etag``), ``if_none_match``
raises ``NotModified`` if that version is current. ``idempotency_key`` makes a repetition within a day answer what the first
answered, instead of doing it again. ``client_id`` takes the place of the client's own.
"""
