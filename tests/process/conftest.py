"""The service beside which most commands and daemons run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder, OtherProgram, program_beside_document_server


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    """A service that implements only the document, with a workspace."""
    with DocumentServer() as running:
        running.workspace("Bench")
        yield running


@pytest.fixture
def service() -> Iterator[OtherProgram]:
    """Another program of such a service."""
    with program_beside_document_server() as program:
        yield program


@pytest.fixture
def folder(tmp_path: Path, server: DocumentServer) -> Folder:
    """A drop folder with a pipeline, before its first file."""
    return Folder(tmp_path, server)
