"""The OpenAPI 3.1 document of the service, generated from its table of operations (contract G23).

The table names the classes of each operation's body and record. The schemas are made from these classes. The docstring of the
handler has the prose. `workspaced.http.openapi.document` adds the parts that follow from the table: the key and its scopes,
ClientId, Idempotency-Key, and the errors that follow from these. `workspaced.http.openapi.routes` serves the document
and the reference page.
"""
