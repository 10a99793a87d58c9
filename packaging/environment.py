"""Keep ``.venv`` in step with ``uv.lock`` and with the back end llama.cpp is built for."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv"
BIN = HOME / ("Scripts" if os.name == "nt" else "bin")
NOTES = HOME / "octavo-backend.json"
LINKS = [ROOT / ".dev" / "octavo" / name for name in ("core", "server", "desktop", "resources")]

UV = "uv==0.13.9"
ENGINE = "llama-cpp-python"
BACKENDS = ("cpu", "cuda", "vulkan", "metal")

# A build for "this CPU" uses whatever the CPU claims, and some virtual machines claim what they then trap.
PORTABLE = ["-DGGML_NATIVE=OFF"]
X86 = ["-DGGML_AVX2=ON", "-DGGML_FMA=ON", "-DGGML_F16C=ON"]
EXTRA = {
    "cpu": ["-DGGML_METAL=OFF"] if sys.platform == "darwin" else [],
    "cuda": ["-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native"],
    "vulkan": ["-DGGML_VULKAN=ON"],
    "metal": ["-DGGML_METAL=ON"],
}


def provide(wanted: str | None) -> None:
    """Make ``.venv`` hold exactly what the lock says, unless it already does."""
    before = recorded()
    backend = wanted or before.get("backend") or default_backend()
    stamp = fingerprint(backend)
    if before.get("stamp") == stamp and is_whole():
        return
    moved = before.get("checkout", str(ROOT)) != str(ROOT)  # the scripts in .venv name its absolute path
    make_venv(anew=moved)
    sync(backend, rebuild=not moved and before.get("backend", backend) != backend)
    record({"backend": backend, "cmake_args": cmake_args(backend), "checkout": str(ROOT), "stamp": stamp})


def default_backend() -> str:
    """Return the back end that a machine of this kind surely has."""
    return "metal" if sys.platform == "darwin" else "cpu"


def cmake_args(backend: str) -> str:
    """Return what CMake is told when it builds llama.cpp, in the form its build settings take."""
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    return ";".join(PORTABLE + (X86 if is_x86 else []) + EXTRA[backend])


def fingerprint(backend: str) -> str:
    """Hash everything the environment depends on."""
    digest = hashlib.sha256(f"{UV} {cmake_args(backend)} {ROOT}".encode())
    for name in ("pyproject.toml", "uv.lock", "packaging/hatch_build.py"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def is_whole() -> bool:
    """Tell whether the interpreter and the links of the editable install are still there."""
    return all(path.exists() for path in [BIN, *LINKS])


def recorded() -> dict[str, str]:
    """Return what the last set-up noted; nothing where there was none."""
    try:
        return dict(json.loads(NOTES.read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def record(facts: dict[str, str]) -> None:
    """Note what was built, for the next set-up and for ``octavo doctor``."""
    draft = NOTES.with_suffix(".new")
    draft.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    draft.replace(NOTES)


def make_venv(*, anew: bool) -> None:
    """Create the environment where it is missing, with the pinned uv inside."""
    python = str(BIN / "python")
    if anew or not Path(python).exists():
        run([sys.executable, "-m", "venv", "--clear", str(HOME)], "a Python environment in .venv")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV], UV)


def sync(backend: str, *, rebuild: bool) -> None:
    """Install what the lock names."""
    print(
        f"Preparing .venv, back end {backend}; the first build of llama.cpp takes some ten minutes.",
        flush=True,
    )
    command = [str(BIN / "uv"), "sync", "--frozen"]
    command += ["--config-settings-package", f"{ENGINE}:cmake.args={cmake_args(backend)}"]
    command += [
        "--reinstall-package",
        "octavo",
    ]  # from uv's cache it would come without the links our hook makes
    command += ["--reinstall-package", ENGINE] if rebuild else []
    run(command, "the packages that uv.lock names")


def run(command: list[str], what: str) -> None:
    """Run one command in the checkout; end the set-up with one sentence when it fails."""
    # The system's certificates, as pip takes them, so that a company's own proxy is trusted by both.
    ours = {"UV_PROJECT_ENVIRONMENT": str(HOME), "VIRTUAL_ENV": str(HOME), "UV_SYSTEM_CERTS": "true"}
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **ours}, check=False).returncode != 0:
        sys.exit(f"Could not install {what}; the lines above say why. The first set-up needs a network.")
