"""Hours in minutes: clients that come, stay, leave in the middle and send nonsense; nothing may grow or mix.

``make soak`` runs ten minutes; OCTAVO_SOAK_S sets another length.
"""

import asyncio
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.e2e.serving import environment, octavo_json, octavo_serve, programs, worker_pid

SECONDS = float(os.environ.get("OCTAVO_SOAK_S", "600"))
CLIENTS = 12
MARKERS = ["apple", "river", "stone", "tiger", "cloud", "piano", "lemon", "eagle"]


class Load:
    """Many clients at one server, and what they met."""

    def __init__(self, url: str, model: str) -> None:
        self.url = url
        self.model = model
        self.met: Counter[str] = Counter()

    async def client(self, number: int, until: float) -> None:
        """Send requests of all kinds, one after the other, until the time is up."""
        draw = random.Random(number)
        async with httpx2.AsyncClient(base_url=self.url, timeout=120) as http:
            while time.monotonic() < until:
                kind = draw.choice(
                    [self.whole, self.left, self.left_in_prefill, self.nonsense, self.too_long]
                )
                await kind(http, draw)
                self.met[kind.__name__] += 1

    async def whole(self, http: httpx2.AsyncClient, draw: random.Random) -> None:
        """A stream to its end, which may hold no other client's marker."""
        marker = draw.choice(MARKERS)
        text = ""
        body = self.body(", ".join([marker] * 12) + ",", 24)
        async with http.stream("POST", "/v1/completions", json=body) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    chunk = json.loads(line[6:])
                    assert "error" not in chunk, chunk
                    text += chunk["choices"][0]["text"] if chunk["choices"] else ""
        assert {word for word in text.replace(",", " ").split() if word in MARKERS} <= {marker}

    async def left(self, http: httpx2.AsyncClient, draw: random.Random) -> None:
        """A stream whose client goes away after some tokens."""
        async with http.stream("POST", "/v1/completions", json=self.body("Once", 200)) as answer:
            seen = 0
            async for _ in answer.aiter_lines():
                seen += 1
                if seen > draw.randint(2, 20):
                    return

    async def left_in_prefill(self, http: httpx2.AsyncClient, draw: random.Random) -> None:
        """A client that goes away while its prompt is read, or while it waits."""
        body = self.body(f"{draw.random()} " + "word " * 600, 5, stream=False)
        try:
            await asyncio.wait_for(http.post("/v1/completions", json=body), draw.uniform(0.05, 1.5))
        except TimeoutError:
            return

    async def nonsense(self, http: httpx2.AsyncClient, draw: random.Random) -> None:
        """A body that can't be used."""
        bad = draw.choice([b"{", b"[]", b'{"prompt": 1e999}', b'{"prompt":"x","temperature":"hot"}', b"\xff"])
        answer = await http.post("/v1/completions", content=bad)
        assert answer.status_code == 400, (bad, answer.text)

    async def too_long(self, http: httpx2.AsyncClient, draw: random.Random) -> None:
        """A prompt that doesn't fit."""
        answer = await http.post("/v1/completions", json=self.body("word " * 3000, 5, stream=False))
        assert answer.json()["error"]["code"] == "context_length_exceeded"

    def body(self, prompt: str, tokens: int, *, stream: bool = True) -> dict[str, object]:
        """Give the body of a greedy completion."""
        return {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": stream,
        }


async def run(load: Load, seconds: float) -> None:
    """Let all clients work for so long; the first failure ends it."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(load.client(number, until) for number in range(CLIENTS)))


@pytest.mark.timeout(SECONDS + 300)
def test_mixed_load_leaves_memory_slots_and_processes_as_they_were(octavo_home: Path, smollm2: Path) -> None:
    env = environment(octavo_home, smollm2)
    with programs(octavo_home), octavo_serve(env) as (url, server):
        model = octavo_json(env, "ls")[0]["key"]
        octavo_json(env, "load", model, "-c", "2048", "--parallel", "4", "--set", "threads=1")
        load = Load(url, model)
        watched = {"worker": psutil.Process(worker_pid(env)), "service": psutil.Process(server.pid)}
        asyncio.run(run(load, max(SECONDS / 5, 10)))
        before = {name: process.memory_info().rss for name, process in watched.items()}
        asyncio.run(run(load, SECONDS))
        after = {name: process.memory_info().rss for name, process in watched.items()}
        print(dict(load.met))
        for name in watched:
            print(f"{name} RSS {before[name] / 2**20:.1f} MiB, after the soak {after[name] / 2**20:.1f} MiB")
        deadline = time.monotonic() + 20
        while (status := octavo_json(env, "ps")[0]) and (status["active"] or status["queued"]):
            assert time.monotonic() < deadline, status
        assert watched["worker"].is_running()
        assert after["worker"] < before["worker"] * 1.05
        assert after["service"] < before["service"] * 1.10 + 8 * 2**20
