"""The OpenAPI 3.1 document of the service, generated from its table of operations (contract G23).

A resource describes its operations in ``api_section.py``, a `workspaced.http.openapi.description.ApiSection`. Its
descriptions are joined to the table by `Operation.name`. `workspaced.http.openapi.document` adds what follows from the
table: the key and its scopes, ClientId, Idempotency-Key, and the errors that any such operation can have. Schemas of
bodies come from `workspaced.core.members`, those of responses from the records. `workspaced.http.openapi.routes` serves
the document and the reference page.
"""
