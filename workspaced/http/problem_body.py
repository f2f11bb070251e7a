"""The body of every error response (contract G14; RFC 9457)."""

from __future__ import annotations

from ingestd.wire import names
from workspaced.core.json_body import encode
from workspaced.core.problems import Problem
from workspaced.http.responses import Response, json_response


def problem_response(problem: Problem, *, instance: str, request_id: str, document_form: bool) -> Response:
    """Return the response for a problem; its body always has ``error``, the one member of the interface document.

    ``document_form``: the interface document shows a 400 of this operation as exactly ``{"error":"Invalid request"}``, and the
    caller did not accept application/problem+json.
    """
    headers = ((names.ERROR_CODE, problem.code), *problem.headers)
    if document_form and problem.status == 400:
        return json_response({"error": "Invalid request"}, status=400, headers=headers)
    body: dict[str, object] = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "code": problem.code,
        "requestId": request_id,
        "error": problem.title,
        **problem.extra,
    }
    if problem.mistakes:
        body["errors"] = [
            {"pointer": mistake.pointer, "code": mistake.code, "detail": mistake.detail} for mistake in problem.mistakes
        ]
    return Response(status=problem.status, headers=(("Content-Type", names.PROBLEM_JSON), *headers), body=encode(body))
