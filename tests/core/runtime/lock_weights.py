"""Load with the weights locked, answer, and print as JSON what came of it: notes, tokens, locked kB.

python lock_weights.py MODEL HOME MODE
"""

import asyncio
import json
import sys
from pathlib import Path

from tests.core.runtime.test_runtime_real import running


async def main(model: Path, home: Path, mode: str) -> None:
    """Load, ask, print."""
    async with running(home, model) as stage:
        status = await stage.runtime.load("SmolLM2", {"load_mode": mode})
        done = await stage.complete()
        lines = Path(f"/proc/{status.pid}/status").read_text().splitlines()
        locked = next(int(line.split()[1]) for line in lines if line.startswith("VmLck"))
        print(json.dumps({"notes": status.notes, "tokens": done.completion_tokens, "locked_kb": locked}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
