"""Header names and media types that the daemon and the service both speak, by the interface document and RFC 9457."""

from __future__ import annotations

API_KEY = "x-api-key"
CLIENT_ID = "ClientId"
IDEMPOTENCY_KEY = "Idempotency-Key"
PREFER = "Prefer"
PREFERENCE_APPLIED = "Preference-Applied"
RETURN_MINIMAL = "return=minimal"
RETURN_REPRESENTATION = "return=representation"
REQUEST_ID = "X-Request-Id"
ERROR_CODE = "X-Error-Code"
ACCEPT_ENCODING = "Accept-Encoding"
CONTENT_ENCODING = "Content-Encoding"
RATE_LIMIT = "RateLimit"
RATE_LIMIT_POLICY = "RateLimit-Policy"
JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
