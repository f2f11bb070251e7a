"""`ingestd trace` with steps and former values: files, workbooks, logs and tables, and what became of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from openpyxl import Workbook

from tests.support.engineering_folder import Folder, OtherProgram
from tests.support.postgres_server import postgresql_server

TABLE = {
    "source": "{connector: database, url: 'sqlite:///pdm.db', table: part, mode: snapshot, key: number, deletes: remove}"
}
ENTRIES = "{key: '{number}.mass', value: '{mass}'}"


class TracedFolder(Folder):
    """A folder with one pipeline of any source."""

    def __init__(
        self, path: Path, service: OtherProgram, *, source: str, entries: str = ENTRIES, more: str = ""
    ) -> None:
        super().__init__(path, service)
        self._service = service
        self.configure(source=source, entries=entries, more=more)

    def configure(self, *, source: str, entries: str = ENTRIES, more: str = "") -> None:
        self.config.write_text(
            f"service: {{url: '{self._service.url}', api_key: '{self._service.api_key}'}}\nstate: var/ingestd.db\n"
            f"pipelines:\n  - {{name: budget, source: {source}, sink: {{workspace: Bench, label: Budget}},\n"
            f"     schedule: {{every: 1h}}, entries: {entries}{more}}}\n",
            encoding="utf-8",
        )

    def sync(self) -> None:
        done = self.here("sync")
        assert done.returncode in {0, 8}, done.stderr

    def trace(self, key: str, *words: str, code: int = 0) -> list[str]:
        run = self.here("trace", key, *words)
        assert run.returncode == code, run.stderr
        return run.stdout.splitlines()

    def rows(self, **masses: str) -> None:
        """Replace the rows of the table ``part``."""
        with closing(sqlite3.connect(self.path / "pdm.db")) as database, database:
            database.execute("DROP TABLE IF EXISTS part")
            database.execute("CREATE TABLE part (number TEXT PRIMARY KEY, mass TEXT)")
            database.executemany("INSERT INTO part VALUES (?, ?)", masses.items())


def steps_in(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if "→" in line]


def notes_in(lines: list[str]) -> list[str]:
    return [line.removeprefix("  note      ") for line in lines if line.startswith("  note")]


MAPPED = """
      {file_name: "RUN{run}.csv", key: "{file.part.run}.{part}.{kind}", value: "{net} g",
       lookup: {kind: {file: types.csv, key: code, value: name, by: "UPPER(code)"}},
       let: {net: "REPLACE(mass, ',', '.')"}, where: "status = 'released'"}
"""


def test_each_step_from_a_row_of_a_file_to_its_value_is_shown(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, source="{connector: directory, path: drop}", entries=MAPPED)
    (tmp_path / "types.csv").write_text("code,name\nM8,bolt\n", encoding="utf-8")
    folder.write("part;mass;code;status\nA-0;1;M8;draft\nA-1;1,25;m8;released\n", "RUN07.csv")
    folder.sync()
    lines = folder.trace("07.A-1.bolt", "--steps")
    assert lines[0] == "07.A-1.bolt = 1.25 g (scalar)"
    assert '  record    part = "A-1", code = "m8", mass = "1,25", status = "released"' in lines
    assert "  file.part.run 07" in lines
    assert steps_in(lines) == [
        "lookup    kind: name of types.csv, code = M8 → bolt",
        "let       net: REPLACE(mass, ',', '.') → 1.25",
        "where     status = 'released' → true",
        "value     {net} g → 1.25 g",
        "key       {file.part.run}.{part}.{kind} → 07.A-1.bolt",
    ]
    assert not notes_in(lines)
    assert {"  source    RUN07.csv, row 3", "  sink      Budget in Bench, delivered"} <= set(lines)
    unknown = folder.here("trace", "07.A-1.BOLT")
    assert (unknown.returncode, "No sink should contain '07.A-1.BOLT'" in unknown.stderr) == (1, True)
    (found,) = json.loads(folder.here("trace", "07.A-1.bolt", "--steps", "--json").stdout)
    assert (found["position"], len(found["facts"]["file.sha256"])) == (3, 64)
    assert found["steps"]["state"] == "same"
    assert found["steps"]["record"] == {"part": "A-1", "mass": "1,25", "code": "m8", "status": "released"}
    assert found["steps"]["steps"][0] == {
        "name": "lookup", "text": "kind: name of types.csv, code = M8", "result": "bolt",
    }  # fmt: skip


def test_without_steps_the_source_is_not_read(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1")
    folder.sync()
    (tmp_path / "pdm.db").unlink()
    lines = folder.trace("A.mass")
    assert "  source    part, number=A" in lines
    assert not steps_in(lines)
    assert not notes_in(lines)
    (note,) = notes_in(folder.trace("A.mass", "--steps"))
    assert "pdm.db" in note


def test_a_changed_row_is_reported_with_what_it_gives_now(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1", B="2")
    folder.sync()
    folder.rows(A="1.3", B="2")
    lines = folder.trace("A.mass", "--steps")
    assert lines[0] == "A.mass = 1 (scalar)"
    assert notes_in(lines) == ["The record has changed: it now gives 1.3 (scalar). The next reading delivers it."]
    assert steps_in(lines)[0] == "value     {mass} → 1.3"
    folder.rows(B="2")
    assert notes_in(folder.trace("A.mass", "--steps")) == ["part has no such record any more: its source has changed."]
    assert notes_in(folder.trace("B.mass", "--steps")) == []


def test_former_values_have_their_row_their_run_and_their_delivery(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    for mass in ("1", "2", "2", "3"):
        folder.rows(A=mass)
        folder.sync()
    lines = folder.trace("A.mass")
    assert lines[0] == "A.mass = 3 (scalar)"
    assert any(line.startswith("  delivered 20") and line.endswith(" UTC, data_sinks.mass 200") for line in lines)
    (found,) = json.loads(folder.here("trace", "A.mass", "--json").stdout)
    assert [(one["value"], one["ending"], one["delivery"]) for one in found["former"]] == [
        ("2", "replaced", "delivered"),
        ("1", "replaced", "delivered"),
    ]
    newest = found["former"][0]
    assert (newest["partition"], newest["position"], newest["ended_by"]) == ("part", "number=A", found["run"])
    assert newest["read_at"] < newest["delivered_at"] < newest["ended_at"] <= found["delivered_at"]
    text = "\n".join(lines)
    assert "former values, the newest first:\n  · 2 (scalar), replaced " in text
    assert f"    budget: part, number=A, read {text.split('part, number=A, read ')[1][:23]}, run " in text


def test_a_removed_entry_still_has_its_former_values(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1", B="2")
    folder.sync()
    folder.rows(B="2")
    folder.sync()
    lines = folder.trace("A.mass", "--steps", code=1)
    assert lines[0] == "A.mass was removed"
    assert any(line.startswith("  · 1 (scalar), removed ") for line in lines)
    (found,) = json.loads(folder.here("trace", "A.mass", "--json").stdout)
    assert (found["removed"], found["value"], found["former"][0]["ending"]) == (True, None, "removed")
    folder.rows(A="1", B="2")
    folder.sync()
    again = folder.trace("A.mass")
    assert again[0] == "A.mass = 1 (scalar)"
    assert any(line.startswith("  · 1 (scalar), removed ") for line in again)


def test_a_value_of_an_approved_run_names_the_approval(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE, more=", guard: {changed: 30, minimum: 1}")
    folder.rows(A="1", B="2", C="3")
    folder.sync()
    folder.rows(A="10", B="20", C="30")
    folder.sync()
    number = folder.held_run()["run"]
    assert notes_in(folder.trace("A.mass", "--steps")) == [
        f"The record has changed: it now gives 10 (scalar). Run {number} is held; 'ingestd approve {number}' delivers it."
    ]
    assert folder.here("approve", str(number)).returncode == 0
    lines = folder.trace("A.mass", "--steps")
    assert lines[0] == "A.mass = 10 (scalar)"
    assert any(line.endswith(f"UTC by the approved run {number}") for line in lines)
    assert not notes_in(lines)


def test_a_value_of_another_program_that_was_overwritten_is_a_former_value(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1", B="2")
    folder.sync()
    service.change("A.mass", "99")
    service.change("B.mass", "98")
    assert folder.here("drift", "--repair").returncode == 6
    assert service.values() == {"A.mass": "1", "B.mass": "2"}
    lines = folder.trace("A.mass")
    assert lines[0] == "A.mass = 1 (scalar)"
    at = next(index for index, line in enumerate(lines) if line.startswith("  · 99 (scalar), overwritten "))
    assert lines[at + 1] == "    found in the service"
    service.change("B.mass", "97")
    assert folder.here("drift", "--adopt").returncode == 6
    adopted = folder.trace("B.mass", "--steps")
    assert adopted[0] == "B.mass = 97 (scalar)"
    assert any(line.startswith("  · 2 (scalar), replaced ") and line.endswith("(drift --adopt)") for line in adopted)
    assert notes_in(adopted) == ["No record of a source has the value."]


def test_an_added_entry_that_was_removed_again_has_its_value(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE, more=", drift: {added: remove}")
    folder.rows(A="1")
    folder.sync()
    service.add("note by Ada", "9")
    assert folder.here("drift", "--repair").returncode == 6
    assert service.values() == {"A.mass": "1"}
    lines = folder.trace("note by Ada", code=1)
    assert lines[0] == "note by Ada was removed"
    assert lines[-2].startswith("  · 9 (scalar), removed ")
    assert lines[-2].endswith(" UTC")
    assert lines[-1] == "    found in the service"


def test_a_record_that_is_rejected_now_says_why(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(
        tmp_path, service, source="{connector: directory, path: drop}", entries="{key: '{part}.mass', value: '{mass}'}",
        more=", contract: {columns: {part: {}, mass: {type: decimal}}}",
    )  # fmt: skip
    folder.write("part,mass\nA,1\n")
    folder.sync()
    for row, reason in (("A,x", "'mass' is 'x'; the contract needs the type decimal."), ("A", "The row has 1 field")):
        folder.write(f"part,mass\n{row}\n")
        (note,) = notes_in(folder.trace("A.mass", "--steps"))
        assert note.startswith(f"The record at its position is now rejected: {reason}")


def test_an_archived_file_is_read_in_the_archive(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(
        tmp_path, service, source="{connector: directory, path: drop, after: archive, archive: done}",
        entries="{key: '{part}.mass', value: '{mass}'}",
    )  # fmt: skip
    folder.write("part,mass\nA,1\n")
    folder.sync()
    folder.write("part,mass\nA,2\n")
    folder.sync()
    archived = tmp_path / "done" / "budget~2.csv"
    assert archived.exists()
    lines = folder.trace("A.mass", "--steps")
    assert notes_in(lines) == [
        f"budget.csv is no longer in its source: it was archived as {archived}.",
        "The record below is from the copy that the source kept.",
    ]
    assert steps_in(lines)[0] == "value     {mass} → 2"
    before = sorted(str(path) for path in tmp_path.rglob("*") if "var" not in path.parts)
    shutil.rmtree(tmp_path / "done")
    assert notes_in(folder.trace("A.mass", "--steps")) == [
        f"budget.csv is no longer in its source: it is not in {tmp_path / 'drop'} any more."
    ]
    after = sorted(str(path) for path in tmp_path.rglob("*") if "var" not in path.parts)
    assert [path for path in before if "done" not in path] == after, "a trace writes and moves nothing"


def test_a_cell_of_a_workbook_is_traced(tmp_path: Path, service: OtherProgram) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["part", "mass"], ["A", 1.5], ["B", 2]):
        sheet.append(row)
    book.save(tmp_path / "budget.xlsx")
    folder = TracedFolder(
        tmp_path, service, source="{connector: file, path: budget.xlsx, settle_seconds: 0.1}",
        entries="{key: '{part}.mass', value: '{mass}', values: {unit: {from: g, to: kg}}}",
    )  # fmt: skip
    folder.sync()
    lines = folder.trace("B.mass", "--steps")
    assert "  source    budget.xlsx, row 3" in lines
    assert steps_in(lines) == ["value     {mass} → 2", "unit      g to kg → 0.002", "key       {part}.mass → B.mass"]


def test_a_line_of_a_log_is_traced_also_after_a_rotation(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(
        tmp_path, service, source="{connector: log, path: drop, pattern: run.csv}",
        entries="{key: '{n}.force', value: '{force}'}",
    )  # fmt: skip
    log = folder.drop / "run.csv"
    log.write_text("n,force\n1,10\n2,20\n", encoding="utf-8")
    folder.sync()
    lines = folder.trace("2.force", "--steps")
    assert "  source    run.csv, row 3" in lines
    assert '  record    n = "2", force = "20"' in lines
    log.rename(folder.drop / "run.csv.1")
    log.write_text("n,force\n3,30\n", encoding="utf-8")
    folder.sync()
    assert '  record    n = "2", force = "20"' in folder.trace("2.force", "--steps")
    (folder.drop / "run.csv.1").unlink()
    assert notes_in(folder.trace("2.force", "--steps")) == [
        f"run.csv has no such record any more: it stays in {folder.drop} and is read on as it grows."
    ]


def test_a_rejected_or_excluded_row_says_why(tmp_path: Path, service: OtherProgram) -> None:
    entries = "{key: '{part}.mass', value: '{mass}', where: \"state = 'ok'\", values: {decimal: '.'}}"
    folder = TracedFolder(tmp_path, service, source="{connector: directory, path: drop}", entries=entries)
    folder.write("part,mass,state\nA,1,ok\n")
    folder.sync()
    folder.write("part,mass,state\nA,x,ok\n")
    lines = folder.trace("A.mass", "--steps")
    assert notes_in(lines) == ["The record has changed: it now is rejected. In 'mass': 'x' is no number."]
    assert "decimal   '.' → no value" in steps_in(lines)
    folder.write("part,mass,state\nA,1,draft\n")
    lines = folder.trace("A.mass", "--steps")
    assert notes_in(lines) == ["The record has changed: it now makes no entry 'A.mass'."]
    assert "where     state = 'ok' → false" in steps_in(lines)
    folder.write("part,mass,state\nZ,1,ok\n")
    assert notes_in(folder.trace("A.mass", "--steps")) == [
        "The record at its position now makes 'Z.mass', not 'A.mass'."
    ]


def test_a_changed_mapping_is_reported(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1.25")
    folder.sync()
    folder.configure(**TABLE, entries="{key: '{number}.mass', value: '{mass}', values: {digits: 2}}")
    assert notes_in(folder.trace("A.mass", "--steps")) == [
        (
            "The mapping, a lookup or the format has changed since the reading: the record now gives 1.3 (scalar). "
            "The next reading delivers it."
        )
    ]


def test_a_mapping_of_other_fields_is_not_reported_as_a_change_of_the_record(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1.25")
    folder.sync()
    folder.configure(**TABLE, entries="{key: '{number}.mass', value: '{number}'}")
    (note,) = notes_in(folder.trace("A.mass", "--steps"))
    assert note.startswith(
        "The mapping, a lookup or the format has changed since the reading: the record at its position now gives A "
    )
    assert note.endswith("The next reading delivers it.")


def test_of_two_archived_files_of_one_size_and_time_the_one_that_was_read_is_used(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = TracedFolder(
        tmp_path, service, source="{connector: directory, path: drop, after: archive, archive: done}",
        entries="{key: '{part}.{n}', value: '{mass}'}",
    )  # fmt: skip
    for number in (1, 2):
        folder.write(f"part,n,mass\nA,{number},{number}\n")
        folder.sync()
    for number in (1, 2):
        lines = folder.trace(f"A.{number}", "--steps")
        assert steps_in(lines)[0] == f"value     {{mass}} → {number}"
    folder.write("part,other\nA,1\n")
    lines = folder.trace("A.2", "--steps")
    assert notes_in(lines)[0].startswith("There is no column 'n'; the columns are 'part', 'other'.")
    assert steps_in(lines)[0] == "value     {mass} → 2"


def test_no_secret_of_the_source_is_shown(tmp_path: Path, service: OtherProgram) -> None:
    folder = TracedFolder(tmp_path, service, **TABLE)
    folder.rows(A="1")
    folder.sync()
    secret = "postgresql://reader:open%20sesame@127.0.0.1:1/pdm"
    folder.configure(source=f"{{connector: database, url: '{secret}', table: part, mode: snapshot, key: number}}")
    for words in (("--steps",), ("--steps", "--json")):
        run = folder.here("trace", "A.mass", *words)
        assert run.returncode == 0
        assert "127.0.0.1" in run.stdout
        assert "sesame" not in run.stdout + run.stderr


def test_a_row_of_postgresql_is_traced_without_its_password(tmp_path: Path, service: OtherProgram) -> None:
    with postgresql_server() as server:
        with server.connect() as client:
            client.execute("CREATE TABLE part (number text PRIMARY KEY, mass numeric)")
            client.execute("INSERT INTO part VALUES ('00417', 0.10), ('00418', 2)")
        url = server.url.replace("postgres@", "postgres:opensesame@")
        folder = TracedFolder(
            tmp_path, service, source=f"{{connector: database, url: '{url}', table: part, mode: changes, key: number}}",
        )  # fmt: skip
        folder.sync()
        with server.connect() as client:
            client.execute("UPDATE part SET mass = 0.11 WHERE number = '00417'")
        folder.sync()
        index = {path: path.read_bytes() for path in tmp_path.rglob("rows.db")}
        lines = folder.trace("00417.mass", "--steps")
        assert "  source    part, number=00417" in lines
        assert '  record    number = "00417", mass = "0.11"' in lines
        assert not notes_in(lines)
        assert any(line.startswith("  · 0.10 (scalar), replaced ") for line in lines)
        assert "opensesame" not in "\n".join(lines)
        assert folder.here("plan").returncode == 0
        assert len(index) == 1
        assert {
            path: path.read_bytes() for path in tmp_path.rglob("rows.db")
        } == index  # only the lock's owner writes it


def test_a_trace_works_while_the_daemon_runs(tmp_path: Path, service: OtherProgram) -> None:
    folder = Folder(tmp_path, service)
    folder.write("part,mass\nA,1\n")
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged")
        run = folder.here("trace", "A.mass", "--steps")
        assert run.returncode == 0
        assert "  value     {mass} → 1" in run.stdout.splitlines()
        assert daemon.stop() == 0
