"""The set-up of docs/how-to/three-machines.md on this machine: the page's files, commands and real programs."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.support.bucket_gate import bucket_gate
from tests.support.daemon_process import Daemon, environment, here
from tests.support.executed_page import blocks
from tests.support.free_port import free_port
from tests.support.haproxy import DEADLINE_SECONDS, HOSTS, Proxy, wait_for
from tests.support.network_hosts import Host, Network
from tests.support.object_server import ObjectServer, credentials_file
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.workspaced_process import WorkspaceService, new_key

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "three-machines.md").read_text(encoding="utf-8")
_FIRST_LINE = re.compile(r"# ([ab, ]+?)(?:: (\S+?)(, continued)?)?\n")


class ThreeMachines:
    """The machines a, b and c, each with a root folder, and the proxy, database and bucket that they use.

    `follow` performs a section of the page. ``services`` and ``daemons``: the running processes by machine. ``hosts``: the
    hosts of a network by machine; without a network, all addresses are of this machine.
    """

    def __init__(
        self,
        folder: Path,
        stack: ExitStack,
        network: Network | None = None,
        database_settings: Sequence[str] = (),
        database_megabytes: int = 0,
    ) -> None:
        self.folder = folder
        self.hosts: dict[str, Host] = {machine: network.host() for machine in "abc"} if network else {}
        self.addresses = {"c": "127.0.0.1", **HOSTS} | {name: host.address for name, host in self.hosts.items()}
        self.variables: dict[str, dict[str, str]] = defaultdict(dict)
        """Further environment variables for the programs of a machine."""
        self._stack = stack
        self.services: dict[str, WorkspaceService] = {}
        self.daemons: dict[str, Daemon] = {}
        stack.callback(self._end)
        self.bucket = ObjectServer()
        stack.callback(self.bucket.stop)
        self.bucket.clear()  # servers of one process share their objects
        self.gate = stack.enter_context(bucket_gate(self.bucket.endpoint, network.address if network else "127.0.0.1"))
        self._database_megabytes = database_megabytes
        self.primary = stack.enter_context(
            postgresql_server(*database_settings, host=self.hosts.get("a"), megabytes=database_megabytes)
        )
        self.standby: PostgresServer | None = None
        self._database_ports = {"a": self.primary.port, "b": free_port()}
        self.port = free_port()
        (folder / "proxy").mkdir()
        self.proxy = stack.enter_context(Proxy(folder / "proxy", self.port, self.addresses, self.hosts.get("c")))
        for machine in self.addresses:
            etc = self.root(machine) / "etc" / "ingestd"
            etc.mkdir(parents=True)
            for name, text in (("s3_id", "test"), ("s3_secret", "s3cret-key")):
                (etc / name).write_text(text)
            (etc / "ca.pem").write_bytes(self.proxy.certificate.read_bytes())
            workspaced = self.root(machine) / "etc" / "workspaced"
            workspaced.mkdir()
            credentials_file(workspaced).rename(workspaced / "s3")
            (self.root(machine) / "var" / "lib").mkdir(parents=True)
        (folder / "srv" / "ingestd").mkdir(parents=True)

    def root(self, machine: str) -> Path:
        """Return the folder that represents the root folder of a machine."""
        return self.folder / machine

    def section(self, number: int) -> str:
        """Return the text of a numbered section of the page."""
        found = re.search(rf"^## {number}\. .*?(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
        assert found, number
        return found[0]

    def start_database_standby(self) -> None:
        """Do what the console commands of section 1 do: create the standby and start it."""
        machine = "b" if self.primary_machine() == "a" else "a"
        self.standby = self._stack.enter_context(
            self.primary.standby(self.hosts.get(machine), self._database_ports[machine], self._database_megabytes)
        )

    def primary_machine(self) -> str:
        """Return the machine that has the primary."""
        return next(machine for machine, port in self._database_ports.items() if port == self.primary.port)

    def make_synchronous(self) -> None:
        """Run the second SQL block of section 1 on the primary."""
        self.run_sql(blocks(self.section(1), "sql")[1])
        with self.primary.connect() as connection:
            states = "SELECT sync_state FROM pg_stat_replication"
            wait_for(lambda: connection.execute(states).fetchone() == ("sync",))

    def run_sql(self, statements: str) -> None:
        with self.primary.connect() as connection:
            for statement in filter(str.strip, statements.split(";")):
                connection.execute(statement.strip().encode())

    def promote(self) -> None:
        """Promote the standby. The former primary must be stopped or unreachable."""
        assert self.standby
        self.standby.run("pg_ctl", "-w", "promote")
        self.primary, self.standby = self.standby, None

    def follow(self, number: int, **changes: str) -> None:
        """Save the files and run the commands of a section, in order. ``changes``: values that a reader fills in, by line."""
        for language, text in re.findall(
            r"^```(ini|yaml|sh)\n(.*?)^```$", self.section(number), re.DOTALL | re.MULTILINE
        ):
            first = _FIRST_LINE.match(text)
            assert first, text
            for machine in first[1].split(", "):
                body = self.here(machine, text[first.end() :])
                for line, value in changes.items():
                    body = re.sub(rf"^{line}=$", f"{line}={value}", body, flags=re.MULTILINE)
                if language == "sh":
                    self._run_commands(machine, body)
                    continue
                target = Path(self.here(machine, first[2]))
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("a" if first[3] else "w", encoding="utf-8") as file:
                    file.write(body)

    def copy_from_a(self, *names: str, to: str = "b") -> None:
        """Copy folders of a to another machine, as the page says. Paths of a in the files become paths of that machine."""
        for name in names:
            for file in (self.root("a") / name).rglob("*"):
                target = self.root(to) / file.relative_to(self.root("a"))
                if file.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(file.read_text().replace(str(self.root("a")), str(self.root(to))))

    def here(self, machine: str, text: str) -> str:
        """Replace the addresses and paths of the page by those of the test."""
        for shown, used in (
            ("10.0.0.11:5432", self._database("a")),
            ("10.0.0.12:5432", self._database("b")),
            ("10.0.0.10", self.addresses["c"]),
            ("10.0.0.11", self.addresses["a"]),
            ("10.0.0.12", self.addresses["b"]),
            ("https://s3.example.org", self.gate.endpoint),
            ("https://data.example.org", self.proxy.url),
            (" -o workspaced", ""),  # an account that this machine does not have
        ):
            text = text.replace(shown, used)
        text = re.sub(r"(?<![\w/.])/srv/", f"{self.folder}/srv/", text)
        return re.sub(r"(?<![\w/.])/(etc|var/lib)/", rf"{self.root(machine)}/\1/", text)

    def _database(self, machine: str) -> str:
        address = self.hosts[machine].address if self.hosts else "127.0.0.1"
        return f"{address}:{self._database_ports[machine]}"

    def _run_commands(self, machine: str, commands: str) -> None:
        """Run commands in one shell. In this shell, ``systemctl`` is a function that calls this process."""
        asked, ask = os.pipe()
        responded, response = os.pipe()
        variables = environment(self.root(machine), PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        shim = f'systemctl() {{ echo "$@" >&{ask}; read -r _ <&{responded}; }}\n'
        with (
            (self.folder / "commands.log").open("a") as log,
            os.fdopen(asked) as requests,
            os.fdopen(response, "w") as done,
            subprocess.Popen(
                ["/bin/bash", "-euo", "pipefail", "-c", shim + commands],
                cwd=self.root(machine) / "etc" / "ingestd",  # the folder with ingestd.yaml
                env=variables,
                stdout=log,
                stderr=log,
                pass_fds=(ask, responded),
            ) as shell,
        ):
            os.close(ask)
            os.close(responded)
            for line in requests:
                verb, *units = line.split()
                for unit in units:
                    if verb in {"stop", "restart"}:
                        self.stop(unit, machine)
                    if verb in {"start", "restart"}:
                        self.start(unit, machine)
                print("done", file=done, flush=True)
            shell.wait(DEADLINE_SECONDS)
        assert shell.returncode == 0, (self.folder / "commands.log").read_text()

    def start(self, unit: str, machine: str, *, wait: bool = True) -> None:
        """Start a program with the variables of its unit. ``wait``: until it is ready or waits as a standby."""
        root = self.root(machine)
        override = root / "etc" / "systemd" / "system" / f"{unit}.service.d" / "override.conf"
        unit_lines = override.read_text().splitlines() if override.exists() else []
        lines = [line.partition("=")[2] for line in unit_lines if line.startswith("Environment=")]
        for line in unit_lines:
            if line.startswith("EnvironmentFile="):
                lines += Path(line.partition("=")[2]).read_text().splitlines()
        variables = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        if unit == "workspaced":
            words = ("--port", str(self.port))
            address = variables.setdefault("WORKSPACED_SERVE_HOST", self.addresses[machine])
            variables |= self.variables[machine]
            data, host = root / "var" / "lib" / "workspaced", self.hosts.get(machine)
            service = WorkspaceService(data, *words, environment=variables, host=host)
            self.services[machine] = service
            url = f"http://{address}:{self.port}/readyz"
            if not wait:
                return
            wait_for(lambda: service.process.poll() is not None or _status(url) == 200)
            assert service.process.poll() is None, service.log
        else:
            variables["CREDENTIALS_DIRECTORY"] = str(root / "etc" / "ingestd")
            etc = root / "etc" / "ingestd"
            variables |= self.variables[machine]
            daemon = Daemon(
                ["ingestd", "run"], env=environment(root, **variables), cwd=etc, host=self.hosts.get(machine)
            )
            self.daemons[machine] = daemon
            if not wait:
                return
            event = "daemon_ready" if "INGESTD_STANDBY" not in variables else "standby_waiting"
            wait_for(lambda: _has(daemon, event) or _has(daemon, "daemon_ready") or daemon.process.poll() is not None)
            assert daemon.process.poll() is None, "\n".join(daemon.lines)

    def stop(self, unit: str, machine: str, number: int = signal.SIGTERM) -> None:
        """Stop a program if it is running."""
        if unit == "workspaced" and (service := self.services.pop(machine, None)):
            service.process.send_signal(number)
            service.process.wait(DEADLINE_SECONDS)
            service.__exit__(None, None, None)
        elif unit == "ingestd" and (daemon := self.daemons.pop(machine, None)):
            daemon.stop(number, seconds=DEADLINE_SECONDS)
            daemon.close()
            with (self.folder / f"{machine}-ingestd.log").open("a") as log:
                log.writelines(f"{line}\n" for line in daemon.lines)

    def role(self, machine: str) -> str:
        """Return the role of a machine by `ingestd standby status`: active or standby."""
        etc = self.root(machine) / "etc" / "ingestd"
        done = here(etc, "standby", "status", "--json", CREDENTIALS_DIRECTORY=str(etc))
        return str(json.loads(done.stdout)["standby"]["role"])

    def active(self) -> str | None:
        """Return the machine of the daemon that delivers; None while no daemon delivers."""
        taken = [(_epoch(one), machine) for machine, one in self.daemons.items() if _is_active(one)]
        return max(taken)[1] if taken else None

    def client(self, key: str, seconds: float = 30.0) -> httpx.Client:
        headers = {"x-api-key": key, "ClientId": "tests"}
        return httpx.Client(base_url=self.proxy.url, verify=self.proxy.context, headers=headers, timeout=seconds)

    def key(self) -> str:
        return (self.root("a") / "etc" / "ingestd" / "api_key").read_text().strip()

    def _end(self) -> None:
        for daemon in self.daemons.values():
            daemon.close()
        for service in self.services.values():
            service.__exit__(None, None, None)


@contextmanager
def three_machines(folder: Path) -> Iterator[ThreeMachines]:
    """Prepare the machines with a PostgreSQL server, a bucket and HAProxy, and without anything that the page does."""
    with ExitStack() as stack:
        yield ThreeMachines(folder, stack)


def begin_with_one_machine(machines: ThreeMachines) -> None:
    """Start both programs on a with SQLite and a folder, as in docs/installation.md."""
    key = new_key(machines.root("a") / "var" / "lib" / "workspaced")
    etc = machines.root("a") / "etc" / "ingestd"
    (etc / "api_key").write_text(key)
    machines.start("workspaced", "a")
    with machines.services["a"].client(key) as http:
        http.post("/v1/workspace", json={"label": "Rover"}).raise_for_status()
    (configuration,) = blocks(machines.section(5), "yaml")
    kept = [line for line in configuration.splitlines() if not line.startswith(("#", "service:", "standby:"))]
    service = f"service: {{url: {machines.services['a'].url}, api_key: '${{credential:api_key}}'}}\n"
    (etc / "ingestd.yaml").write_text(service + machines.here("a", "\n".join(kept)))
    machines.start("ingestd", "a")


def walk(machines: ThreeMachines, variables: str) -> Iterator[int]:
    """Follow the page from one machine to its end. Yield 0, then the number of each section when it is done.

    ``variables``: lines that are added to the environment file of the service.
    """
    begin_with_one_machine(machines)
    yield 0
    machines.run_sql(blocks(machines.section(1), "sql")[0])
    machines.start_database_standby()
    machines.make_synchronous()
    yield 1
    machines.follow(2, WORKSPACED_ENCRYPTION_KEY=base64.b64encode(os.urandom(32)).decode())
    with (machines.root("a") / "etc" / "workspaced" / "environment").open("a") as file:
        file.write(variables)
    yield 2
    machines.follow(3)
    yield 3
    machines.copy_from_a("etc/workspaced", "etc/systemd")
    machines.follow(4)
    machines.proxy.wait_until(a="UP", b="UP")
    yield 4
    (machines.root("b") / "etc" / "ingestd" / "api_key").write_text(machines.key())
    machines.follow(5)
    yield 5


def _is_active(daemon: Daemon) -> bool:
    return daemon.process.poll() is None and _has(daemon, "daemon_ready")


def _epoch(daemon: Daemon) -> int:
    """Return the epoch of the last lease that a daemon has taken; 0 if it has taken no lease."""
    return max((one["epoch"] for one in daemon.events if one.get("event") == "lease_taken"), default=0)


def _has(daemon: Daemon, event: str) -> bool:
    return any(one.get("event") == event for one in daemon.events)


def _status(url: str) -> int:
    try:
        return httpx.get(url, timeout=10).status_code
    except httpx.TransportError:
        return 0
