"""The page docs/how-to/three-machines.md, section by section, on one machine with real programs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.campaign.chaos import VARIABLES, Chaos
from tests.support.haproxy import wait_for
from tests.support.three_machines import three_machines, walk


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_section_of_the_page_leaves_a_system_that_works_and_at_the_end_parts_may_die(tmp_path: Path) -> None:
    # contract P2, P7, P8
    with three_machines(tmp_path) as machines:
        masses = tmp_path / "srv" / "ingestd" / "masses.csv"
        _write(masses, "0")
        file = ""
        for section in walk(machines, VARIABLES):
            mass = str(section + 1)
            _write(masses, mass)
            http = machines.client(machines.key()) if section >= 4 else machines.services["a"].client(machines.key())
            with http:
                masses_become(mass, http)
                if section == 2:
                    assert (tmp_path / "a" / "var" / "lib" / "workspaced-sqlite" / "workspaced.db").exists()
                    file = upload(http, b"before the bucket")
                if section >= 2:
                    assert http.get(f"/v1/cloud-storage/download/{file}").content == b"before the bucket"
        assert len(machines.bucket.paths("workspaced")) == 2  # the bytes and the identity
        assert [machines.role(machine) for machine in ("a", "b")] == ["active", "standby"]

        with ExitStack() as stack:
            chaos = Chaos(machines, 1, stack)
            for step in (
                Chaos.upload,
                Chaos.kill_active,
                Chaos.change,
                Chaos.kill_primary,
                Chaos.kill_host,
                Chaos.change,
            ):
                step(chaos)
            chaos.finish()


def _write(path: Path, mass: str) -> None:
    beside = path.with_suffix(".part")
    beside.write_text(f"part,mass_kg\nwheel,{mass}\n")
    beside.rename(path)


def masses_become(mass: str, http: httpx.Client) -> None:
    """Wait until the only sink has the mass."""

    def found() -> bool:
        try:
            (workspace,) = http.get("/v1/workspace").raise_for_status().json()
            sinks = http.get(f"/v1/workspace/{workspace['id']}/data-sink").raise_for_status().json()
        except httpx.HTTPError:
            return False
        return [{entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks] == [{"wheel.mass": mass}]

    wait_for(found)


def upload(http: httpx.Client, content: bytes) -> str:
    (workspace,) = http.get("/v1/workspace").json()
    params = {"workspaceId": workspace["id"], "fileName": "a.txt"}
    return str(http.post("/v1/cloud-storage", params=params, content=content).raise_for_status().json()["id"])
