"""A reload requests another attempt from connectors that stopped after a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.reload import Reloader
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext

CONFIGURATION = """
service: {url: "http://127.0.0.1:8400", api_key: key}
state: state.db
pipelines:
  - name: parts
    source: {connector: database, url: "sqlite:///p.db", table: p}
    entries: [{key: "{id}", value: "{v}"}]
    sink: {workspace: w, label: l}
    schedule: {every: 15m}
"""


class _Stopped(Connector):
    resumed = 0

    def partitions(self) -> Iterable[Partition]:
        return []

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002
        return iter(())

    def resume(self) -> None:
        self.resumed += 1


class _Service:
    def use_api_key(self, api_key: str) -> bool:
        return not api_key

    def retry_now(self) -> None:
        """Do nothing: there is no lane."""


async def test_a_reload_resumes_sources_unless_the_configuration_has_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "ingestd.yaml"
    path.write_text(CONFIGURATION)
    configuration = read_configuration(path, environment={}, cwd=tmp_path)
    connector = _Stopped(None, SourceContext(pipeline="parts", base=tmp_path, now=lambda: 0.0))
    mistaken = False

    def read(former: Configuration) -> Configuration:
        if mistaken:
            raise ConfigurationError(())
        return former

    service = _Service()
    reloader = Reloader(
        configuration, client=service, dispatcher=service, connectors=[connector], emit=lambda _: None, read=read
    )
    await reloader.reload(by="test")
    assert connector.resumed == 1
    mistaken = True
    await reloader.reload(by="test")
    assert connector.resumed == 1
