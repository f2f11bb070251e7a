from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = """
import threading, time
with open("executed", "a") as file:
    file.write("once\\n")
time.sleep(0.05)  # other threads come meanwhile
VALUE = 7
"""


def run(folder: Path, script: str) -> list[str]:
    """Run a script beside a package ``library`` that notes each execution, and return its output and these notes."""
    package = folder / "library"
    package.mkdir()
    (package / "__init__.py").write_text(LIBRARY)
    (package / "part.py").write_text("PART = 8\n")
    (folder / "user.py").write_text("import library\n\ndef use():\n    return library.VALUE\n")
    names = "complete_imports, defer_imports, is_deferred"
    head = f"import sys\nfrom ingestd.process.deferred_imports import {names}\ndefer_imports('library')\n"
    root = Path(__file__).parents[4]
    path = f"{folder}:{root}"
    done = subprocess.run(
        [sys.executable, "-c", head + script],
        cwd=folder, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    notes = folder / "executed"
    return done.stdout.split() + (notes.read_text().split() if notes.exists() else [])


def test_an_import_alone_executes_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "import user\nprint(is_deferred('library'))") == ["True"]


def test_a_package_that_nothing_imports_is_in_no_list_of_modules(tmp_path: Path) -> None:
    assert run(tmp_path, "print('library' in sys.modules, is_deferred('library'))") == ["False", "False"]


def test_the_first_use_imports_the_package_for_every_module(tmp_path: Path) -> None:
    script = "import user\nprint(user.use(), is_deferred('library'))\nimport library\nprint(library.VALUE, user.use())"
    assert run(tmp_path, script) == ["7", "False", "7", "7", "once"]


@pytest.mark.parametrize(
    "script",
    [
        "import user\nfrom library import VALUE\nprint(VALUE)",
        "import user\nimport library.part\nprint(library.VALUE)",
        "import user\nfrom library.part import PART\nprint(user.use())",
    ],
)
def test_names_and_submodules_import_it_at_once(tmp_path: Path, script: str) -> None:
    assert run(tmp_path, script) == ["7", "once"]


def test_threads_that_use_it_first_at_the_same_time_all_see_the_whole_package(tmp_path: Path) -> None:
    script = (
        "import user\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n    print(*pool.map(lambda _: user.use(), range(8)))"
    )
    assert run(tmp_path, script) == [*(["7"] * 8), "once"]


def test_a_missing_name_and_a_missing_package_raise_as_always(tmp_path: Path) -> None:
    script = (
        "import library\ndefer_imports('absent')\nimport absent\n"
        "try:\n    library.missing\nexcept AttributeError as error:\n    print(type(error).__name__)\n"
        "for _ in range(2):\n    try:\n        absent.name\n    except ModuleNotFoundError as error:\n        print(error.name)"
    )
    assert run(tmp_path, script) == ["AttributeError", "absent", "absent", "once"]


def test_a_package_that_is_imported_already_stays_as_it_is(tmp_path: Path) -> None:
    script = "import user\nuser.use()\ndefer_imports('library')\nimport library\nprint(is_deferred('library'))"
    assert run(tmp_path, script) == ["False", "once"]


def test_all_imports_can_be_completed_at_once(tmp_path: Path) -> None:
    script = "import user\ndefer_imports('absent')\ncomplete_imports()\nprint(is_deferred('library'), user.use())"
    assert run(tmp_path, script) == ["False", "7", "once"]
