"""What llama.cpp itself would allocate, told without reading or allocating a weight.

A throw-away child process loads the model with ``no_alloc`` (include/llama.h) and makes one context per
configuration; llama.cpp then runs its own allocator and says the sizes. That also works on a sparse file that
holds nothing but a GGUF header, so before a download. A model takes about 0.1 s (0.5 s with a vocabulary of
200,000), a context 8 to 20 ms, so ask for many configurations at once.

Sizes are read from log lines (rounded to 0.01 MiB). Where the C++ ABI is the one that we know,
``llama_get_memory_breakdown`` gives exact bytes; it is believed only if it agrees with the log. Caveats
(measured): recurrent states and the output buffer are really allocated in the child.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.client import death_of_worker
from octavo.core.errors import LoadFailed, WorkerCrashed

DEADLINE_S = 60.0
"""For a load; each configuration adds ``DEADLINE_PER_CONFIG_S``."""
DEADLINE_PER_CONFIG_S = 1.0


class Simulated(msgspec.Struct, frozen=True, kw_only=True, tag="simulated"):
    """What llama.cpp would allocate, in bytes.

    ``kv`` and ``recurrent`` sum up exactly where ``is_exact``; of a model that has both, each alone is
    rounded to 0.01 MiB. ``weights`` is per kind of buffer ("CPU", "CPU_REPACK", a device's name).
    """

    n_ctx: int
    n_ctx_per_slot: int
    kv: int
    recurrent: int
    compute: int
    output: int
    weights: dict[str, int]
    is_exact: bool

    @property
    def total(self) -> int:
        """All of it."""
        return self.kv + self.recurrent + self.compute + self.output + sum(self.weights.values())


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """llama.cpp would not make a context like that; ``reason`` is its own."""

    reason: str


Outcome = Simulated | Refused


class Task(msgspec.Struct, frozen=True):
    """What the child is to do."""

    path: str
    configs: list[LoadConfig]
    may_use_breakdown: bool = True


class _LoadRefused(msgspec.Struct, frozen=True, tag="load_refused"):
    reason: str
    log: list[str]


Line = Simulated | Refused | _LoadRefused


def simulate(path: Path | str, configs: Sequence[LoadConfig]) -> list[Outcome]:
    """Give what llama.cpp would allocate for each of ``configs``; blocks for the time of a child process.

    Raises ``LoadFailed`` when llama.cpp refuses the model, ``WorkerCrashed`` or ``WrongCpuBuild`` when the
    child dies.
    """
    task = Task(str(path), list(configs))
    try:
        return _run(task)
    except WorkerCrashed:
        # it may come from the C++ symbol; the log alone is safe
        return _run(msgspec.structs.replace(task, may_use_breakdown=False))


def simulate_one(path: Path | str, config: LoadConfig) -> Outcome:
    """Give what llama.cpp would allocate for one configuration."""
    return simulate(path, [config])[0]


def _run(task: Task) -> list[Outcome]:
    deadline = DEADLINE_S + DEADLINE_PER_CONFIG_S * len(task.configs)
    try:
        ended = subprocess.run(
            _program(),
            input=msgspec.json.encode(task),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=deadline,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise LoadFailed(f"llama.cpp's dry run took longer than {deadline:.0f} s.", log=[]) from fault
    return _outcomes(task, ended)


def _outcomes(task: Task, ended: subprocess.CompletedProcess[bytes]) -> list[Outcome]:
    lines = [msgspec.json.decode(line, type=Line) for line in ended.stdout.splitlines()]
    for line in lines:
        if isinstance(line, _LoadRefused):
            raise LoadFailed(
                f"llama.cpp could not load {task.path}: {line.reason}.",
                hint="The file may be damaged, or of a kind that this engine does not know.",
                log=line.log,
            )
    outcomes = [line for line in lines if not isinstance(line, _LoadRefused)]
    if ended.returncode or len(outcomes) != len(task.configs):
        raise death_of_worker(ended.returncode, task.path, was_asked=False)
    return outcomes


def _program() -> list[str]:
    """Give the command that starts the child; a frozen app starts itself under another verb."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "simulate-process"]
    return [sys.executable, "-m", "octavo.core.engine.simulate_process"]


class SimulationCache:
    """Results that are kept in a folder, by identity of the file, engine version and parameters."""

    def __init__(self, folder: Path, engine_version: str) -> None:
        self._folder = folder
        self._engine_version = engine_version

    def simulate(self, path: Path, configs: Sequence[LoadConfig]) -> list[Outcome]:
        """Give kept results, and simulate those that are missing; raises what ``simulate`` raises."""
        place = self._place(path)
        known = _read(place)
        missing = [config for config in configs if _key(config) not in known]
        if missing:
            known |= dict(zip(map(_key, missing), simulate(path, missing), strict=True))
            _write(place, known)
        return [known[_key(config)] for config in configs]

    def _place(self, path: Path) -> Path:
        state = path.stat()
        identity = (str(path.resolve()), state.st_size, state.st_mtime_ns, self._engine_version)
        name = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


# fields of a configuration that change no size
_TIMING = {
    "elastic": True,
    "mixed_step": 1,
    "threads": None,
    "ttl_s": None,
    "rope_base": None,
    "rope_scale": None,
}


def _key(config: LoadConfig) -> str:
    return msgspec.json.encode(msgspec.structs.replace(config, **_TIMING)).decode()


def _read(place: Path) -> dict[str, Outcome]:
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, Outcome])
    except (OSError, msgspec.DecodeError):
        return {}


def _write(place: Path, known: dict[str, Outcome]) -> None:
    """Keep results; a full disk only costs the next call its time."""
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(known))
        fresh.replace(place)
    except OSError:
        fresh.unlink(missing_ok=True)
