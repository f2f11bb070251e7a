"""The OpenAPI 3.1 document of the service, made from its own table of operations (contract G23).

A slice describes its operations beside them, in ``described.py``: a `workspaced.http.openapi.description.ApiSection` whose
descriptions are joined to the table by `Operation.name`. What follows from the table itself (the key and its scopes,
ClientId, Idempotency-Key, the failures that any such operation can have) is said once, in `workspaced.http.openapi.document`.
`workspaced.http.openapi.routes` serves the document and, from the same, the reference pages.
"""
