"""The two sides of the comparison: Octavo's service, and llama.cpp's own server."""

import os
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

ROOT = Path(__file__).resolve().parents[2]
PEER = "xllamacpp==2026.10.11549"
PEER_HOME = ROOT / "build" / "peer-venv"
START_DEADLINE_S = 120


@dataclass
class Side:
    """One server under test: where it answers, and the processes whose memory counts."""

    name: str
    url: str
    model: str
    process: subprocess.Popen[str]
    pid: int
    beside: dict[str, int] = field(default_factory=dict)

    def peak_bytes(self, pid: int | None = None) -> int:
        """Give the largest resident size that a process ever had (VmHWM)."""
        status = Path(f"/proc/{pid or self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


def peer(model: Path, slots: int, context: int, threads: int) -> Side:
    """Start llama.cpp's own server; builds its environment first."""
    python = PEER_HOME / "bin" / "python"
    if not python.exists():
        venv.create(PEER_HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
    script = Path(__file__).with_name("peer_server.py")
    command = [str(python), str(script), str(model), str(slots), str(context), str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    side = Side("llama-server", url, "model", process, process.pid)
    _wait(side)
    return side


def ours(model: Path, slots: int, context: int, threads: int) -> Side:
    """Start the service on a home of its own with this one model, loaded as the peer is."""
    home = tempfile.mkdtemp(prefix="octavo-")
    environment = {**os.environ, "OCTAVO_HOME": home, "OCTAVO_STARTER_MODEL": str(model)}
    octavo = str(Path(sys.executable).with_name("octavo"))
    command = [octavo, "serve", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    url = process.stdout.readline().split("at ")[1].split("/v1")[0]
    side = Side("octavo", url, "", process, process.pid)
    _wait(side)
    _load(side, slots, context, threads)
    return side


def _load(side: Side, slots: int, context: int, threads: int) -> None:
    """Load with the same number of cells in all, and note the pids that count."""
    with httpx2.Client(base_url=side.url, timeout=60) as client:
        side.model = client.get("/v1/models").json()["data"][0]["id"]
        body = {"model": side.model, "context": slots * context, "slots": slots, "threads": threads}
        client.post("/api/v1/models/load", json=body).raise_for_status()
        (instance,) = client.get("/api/v1/instances").json()
    side.beside = {"service": side.pid}
    side.pid = instance["pid"]


def _wait(side: Side) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        try:
            if httpx2.get(f"{side.url}/health", timeout=5).status_code == 200:
                return
        except httpx2.HTTPError:
            if time.monotonic() > deadline:
                side.stop()
                raise
        time.sleep(0.2)
