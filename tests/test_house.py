"""The house rules: who may import whom, how long things get, what each says of itself."""

import ast
import getpass
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "server", "desktop", "resources")
CODE = ("core", "server", "desktop")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50

LAYERS = "desktop and server both build on core, and never on each other"
FLOORS = "the floors of core"
QT = "only desktop knows Qt"
WEB = "only server knows the web framework"
LLAMA = "only the engine knows llama.cpp"
VIOLATIONS = [
    (LAYERS, "desktop", "import octavo.server.planted"),
    (LAYERS, "server", "import octavo.desktop.planted"),
    (LAYERS, "core", "import octavo.server.planted"),
    (FLOORS, "core/gguf", "import octavo.core.library.planted"),
    (FLOORS, "core/client", "import octavo.core.runtime.planted"),
    (FLOORS, "core", "import octavo.core.gguf"),
    (QT, "core/config", "from PySide6.QtCore import QObject"),
    (QT, "server", "import pyqtgraph"),
    (WEB, "core/runtime", "import fastapi"),
    (WEB, "desktop", "from uvicorn import Server"),
    (LLAMA, "core/runtime", "import llama_cpp"),
    (LLAMA, "server", "from llama_cpp import llama_cpp"),
]


def run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of this environment and return what it printed."""
    command = (str(Path(sys.executable).parent / command[0]), *command[1:])
    whole = {**os.environ, **env}
    return subprocess.run(command, cwd=cwd, env=whole, capture_output=True, text=True, check=False)


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield every source file of the product, by its path below the checkout, parsed."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def kept_files() -> Iterator[Path]:
    """Yield every text file that belongs to the checkout, the lock apart."""
    roots = [ROOT / name for name in (*FOLDERS, "tests", "packaging", "docs", ".ci")]
    paths = [path for root in roots for path in root.rglob("*")] + list(ROOT.glob("*"))
    for path in sorted(paths):
        if path.is_file() and "__pycache__" not in path.parts and path.name != "uv.lock":
            yield path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the product, under its import name, to where a test may spoil it."""
    root = tmp_path_factory.mktemp("house")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, root / "octavo" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def contracts() -> list[dict[str, Any]]:
    """Return the import contracts as pyproject.toml states them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return list(settings["tool"]["importlinter"]["contracts"])


def plant(tree: Path, folder: str, line: str) -> list[Path]:
    """Write a module into a folder, and an innocent one wherever it points; return what was made."""
    targets = re.findall(r"octavo\.([\w.]+)\.planted", line)
    made = [tree / "octavo" / name.replace(".", "/") / "planted.py" for name in [folder, *targets]]
    for path in made:
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text("")
    made[0].write_text(line)
    return made


def test_imports_keep_the_layers() -> None:
    report = run("lint-imports", "--no-cache")
    assert report.returncode == 0, report.stdout


def test_every_contract_has_a_planted_violation() -> None:
    assert {contract["name"] for contract in contracts()} == {contract for contract, _, _ in VIOLATIONS}


@pytest.mark.parametrize(("contract", "folder", "line"), VIOLATIONS)
def test_planted_violation_is_caught(tree: Path, contract: str, folder: str, line: str) -> None:
    made = plant(tree, folder, line)
    report = run("lint-imports", "--no-cache", "--config", "pyproject.toml", cwd=tree, PYTHONPATH=str(tree))
    for path in made:
        path.unlink()
    assert report.returncode == 1
    assert f"{contract} BROKEN" in report.stdout


def test_ruff_finds_nothing() -> None:
    report = run("ruff", "check", "--no-cache", ".")
    assert report.returncode == 0, report.stdout


def test_ruff_would_format_nothing() -> None:
    report = run("ruff", "format", "--check", "--no-cache", ".")
    assert report.returncode == 0, report.stdout


@pytest.mark.timeout(600)
def test_mypy_strict_finds_nothing() -> None:
    report = run("mypy", *(part for name in CODE for part in ("-p", f"octavo.{name}")))
    assert report.returncode == 0, report.stdout


def test_packaging_is_no_package() -> None:
    # With the checkout on sys.path it would hide the packaging library that pip-installed tools import.
    assert not (ROOT / "packaging" / "__init__.py").exists()


def test_octavo_itself_is_a_namespace() -> None:
    assert not (ROOT / ".dev" / "octavo" / "__init__.py").exists()


def test_no_file_is_long() -> None:
    lengths = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path, _ in sources()}
    assert not {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES}


def test_no_function_is_long() -> None:
    lengths = {
        f"{path}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


def test_every_module_and_public_class_and_function_says_what_it_is() -> None:
    silent = [path for path, module in sources() if not ast.get_docstring(module)]
    silent += [
        f"{path}:{node.name}"
        for path, module in sources()
        for node in module.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert not silent


def test_imports_are_absolute() -> None:
    relative = [
        f"{path}:{node.lineno}"
        for path, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_no_file_names_a_machine_or_a_registry() -> None:
    machine = r"(?<![\w./-])/(?:work|root|opt/pypi)/"
    registry = r"(?:pypi|pythonhosted|npmjs|debian)\.org/|registry\.npmjs"
    pattern = re.compile(f"{machine}|{registry}|{re.escape(os.path.expanduser(f'~{getpass.getuser()}'))}/")
    named = {}
    for path in kept_files():
        if path != Path(__file__) and (hits := pattern.findall(path.read_bytes().decode("utf-8", "ignore"))):
            named[str(path.relative_to(ROOT))] = hits
    assert not named
