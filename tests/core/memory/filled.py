"""Load a model in a real worker, fill its context once, and see what it takes."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from octavo.core.config.load_config import LoadConfig
from tests.core.engine.real_engine import ask, real_engine

MIB = 1024 * 1024
# llama.cpp's log of a real load
BUFFERS = {
    "kv": re.compile(r"KV buffer size = +([\d.]+) MiB"),
    "compute": re.compile(r"compute buffer size = +([\d.]+) MiB"),
    "output": re.compile(r"output buffer size = +([\d.]+) MiB"),
}


@dataclass(frozen=True)
class Filled:
    """What a worker said of its buffers (MiB), and its private memory in the end (bytes)."""

    buffers: dict[str, float]
    anonymous: int


def fill(model: Path, folder: Path, config: LoadConfig) -> Filled:
    """Run a prompt as long as the context; gives what the worker then holds."""

    async def run() -> Filled:
        wishes = {name: getattr(config, name) for name in config.__struct_fields__}
        async with real_engine(model, folder, **wishes) as engine:
            buffers = {name: _sum(pattern, engine.log_lines()) for name, pattern in BUFFERS.items()}
            prompt = [100 + 37 * i % 20_000 for i in range(engine.ready().context - 4)]
            answer = await ask(engine, prompt, 3)
            assert answer.finished is not None
            assert engine.pid is not None
            return Filled(buffers, _anonymous(engine.pid))

    return asyncio.run(run())


def _sum(pattern: re.Pattern[str], lines: list[str]) -> float:
    return sum(float(found[1]) for line in lines if (found := pattern.search(line)))


def _anonymous(pid: int) -> int:
    """Give RssAnon (proc(5)) in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024
