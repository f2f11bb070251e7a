"""The document-only server, which also keeps apart what it accepted."""

from __future__ import annotations

from tests.support.document_server import DocumentServer, Request


class RecordedDocumentServer(DocumentServer):
    """A create that is refused because the key exists has written nothing; ``accepted`` are those that have."""

    def __init__(self) -> None:
        super().__init__()
        self._accepted: list[Request] = []

    def act(self, request: Request) -> tuple[int, bytes]:
        status, content = super().act(request)
        if status < 300 and request.writes:
            self._accepted.append(request)
        return status, content

    def accepted(self) -> list[Request]:
        """The requests that changed something."""
        return list(self._accepted)

    def forget_requests(self) -> None:
        super().forget_requests()
        self._accepted.clear()
