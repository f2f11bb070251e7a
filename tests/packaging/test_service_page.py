"""The page about the service is accurate: its commands run, its options exist, its tables are those of the code."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from workspaced.security.permissions import ROLES
from workspaced.settings.environment import settings_from
from workspaced.settings.model import HistorySettings, Limits, WorkspacedSettings
from workspaced.settings.workers import ConversionSettings, DeliverySettings
from workspaced.storage.blobs.address import BucketAddress

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
ROLES_TABLE = re.compile(r"(?<=<!-- roles: begin -->\n).*?(?=<!-- roles: end -->)", re.DOTALL)
VARIABLES = re.compile(r"^\| `(WORKSPACED_[A-Z_]+)` \| (.*?) ?\| .+ \|$", re.MULTILINE)
DEADLINE_SECONDS = 110

BUCKET = BucketAddress(bucket="files")
# Variables of the command line, and those with their own format: the text of their defaults on the page.
OTHERS = {
    "DATABASE_URL": "",
    "ADMIN_HOST": "127.0.0.1",
    "ADMIN_PORT": "one above the port",
    "TLS_CERTIFICATE": "",
    "TLS_KEY": "",
    "ENCRYPTION_KEY": "",
    "LOST_ENCRYPTION_KEY": "",
    "BLOBS": "",
    "BLOBS_ENDPOINT": "",
    "BLOBS_REGION": BUCKET.region,
    "BLOBS_PATH_STYLE": str(BUCKET.path_style).lower(),
    "BLOBS_CREDENTIALS": "",
    "BLOBS_SECONDS": str(BUCKET.seconds),
    "PUBLIC_URL": "",
    "TRUSTED_PROXIES": "",
    "VISIBLE_ID_PREFIX": "SNK",
    "ALLOW_HTTP": "false",
    "ALLOWED_CIDRS": "",
    "ALLOWED_HOSTS": "",
    "RETRY_SECONDS": ",".join(f"{seconds:g}" for seconds in DeliverySettings().retry_seconds),
    "LEASE_SECONDS": f"{DeliverySettings().lease_seconds:g}",
}
CONVERSION = ("lease_seconds", "at_once", "seconds", "cpu_seconds", "memory_bytes", "output_bytes")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_commands_run_in_order_with_a_real_service(tmp_path: Path) -> None:
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        for held in (one, two, three):
            held.bind(("127.0.0.1", 0))
        service, admin, receiver = (str(held.getsockname()[1]) for held in (one, two, three))
    (python,) = _blocks("python")
    (tmp_path / "receiver.py").write_text(python.replace("9000", receiver))
    # The ports are free ones; everything else is as on the page.
    script = "\n".join(_blocks("sh")).replace("8400", service).replace("8401", admin).replace("9000", receiver)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "WORKSPACED_SERVE_PORT": service,
        "WORKSPACED_ADMIN_PORT": admin,
    }
    ran = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = ran.communicate(timeout=DEADLINE_SECONDS)
    finally:
        _end_all_of(ran.pid)
    log = (tmp_path / "service.log").read_text()
    assert ran.returncode == 0, f"{said}\n{log}"
    for word in (
        "SNK-1\n",
        "0.10 kg\n",
        '"deleted":1',
        "data_sink.entry.created 00420.mass\n",
        "part_number",
        "preview.json\n",
    ):
        assert word in said, (word, said)
    assert said.count("is restored.") == 2
    assert "has the records of data/workspaced.db and" in said
    assert '"event": "service_stopped"' in log or '"event":"service_stopped"' in log


def _end_all_of(session: int) -> None:
    """Kill the processes that a failed script left."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_every_variable_is_in_the_table_with_its_default_and_nothing_else() -> None:
    listed = VARIABLES.findall(PAGE)
    assert len(listed) == len(dict(listed))
    wanted = {f"WORKSPACED_{name}": default for name, default in OTHERS.items()}
    for field in dataclasses.fields(Limits):
        wanted[f"WORKSPACED_{field.name.upper()}"] = str(field.default)
    for field in dataclasses.fields(HistorySettings):
        wanted[f"WORKSPACED_HISTORY_{field.name.upper()}"] = str(field.default)
    for name in CONVERSION:
        wanted[f"WORKSPACED_CONVERSION_{name.upper()}"] = f"{getattr(ConversionSettings(), name):.0f}"
    for field in dataclasses.fields(WorkspacedSettings):
        if field.type in {"bool", "int", "float"}:
            text = str(field.default).lower() if field.type == "bool" else f"{field.default:g}"
            wanted[field.metadata.get("variable", f"WORKSPACED_{field.name.upper()}")] = text
    assert dict(listed) == wanted


def test_the_default_of_each_variable_is_read_as_the_default() -> None:
    ours = {
        f"WORKSPACED_{name}"
        for name in ("BLOBS", "DATABASE_URL", "ADMIN_HOST", "ADMIN_PORT", "TLS_CERTIFICATE", "TLS_KEY")
    }
    given = {name: text for name, text in VARIABLES.findall(PAGE) if name not in ours}
    prefix = given.pop("WORKSPACED_VISIBLE_ID_PREFIX")
    assert settings_from(given, data=Path("data")) == WorkspacedSettings(data=Path("data"))
    assert settings_from({"WORKSPACED_VISIBLE_ID_PREFIX": prefix}, data=Path("data")).visible_id_prefix == prefix


def test_the_table_of_roles_is_that_of_the_code() -> None:
    # contract A5
    scopes = sorted(frozenset().union(*ROLES.values()))
    rows = [
        f"| `{scope}` | " + " | ".join("x" if scope in ROLES[role] else " " for role in ROLES) + " |"
        for scope in scopes
    ]
    head = [f"| scope | {' | '.join(ROLES)} |", f"|---|{'---|' * len(ROLES)}"]
    found = ROLES_TABLE.search(PAGE)
    assert found is not None
    assert found[0].strip().splitlines() == [*head, *rows]
