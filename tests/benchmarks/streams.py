"""What is measured at one side: streams of completions, and how fast they come."""

import asyncio
import json
import time
from dataclasses import dataclass

import httpx2

from tests.benchmarks.sides import Side


@dataclass(frozen=True, slots=True)
class Stream:
    """One finished completion: seconds to the first and last token, and counts from its usage."""

    first_s: float
    last_s: float
    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens_per_s(self) -> float:
        """Decode speed, from the first to the last token."""
        return (self.completion_tokens - 1) / (self.last_s - self.first_s)


async def complete(client: httpx2.AsyncClient, side: Side, prompt: str, tokens: int) -> Stream:
    """Stream one greedy completion of exactly ``tokens`` tokens."""
    body = {
        "model": side.model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    started = time.perf_counter()
    first = last = 0.0
    usage: dict[str, int] = {}
    async with client.stream("POST", f"{side.url}/v1/completions", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            now = time.perf_counter() - started
            chunk = json.loads(line[6:])
            if chunk.get("choices") and chunk["choices"][0].get("text"):
                first, last = first or now, now
            usage = chunk.get("usage") or usage
    return Stream(first, last, usage["prompt_tokens"], usage["completion_tokens"])


def together(side: Side, prompts: list[str], tokens: int) -> list[Stream]:
    """Run all prompts at the same time."""

    async def run() -> list[Stream]:
        async with httpx2.AsyncClient(timeout=600) as client:
            return list(await asyncio.gather(*(complete(client, side, prompt, tokens) for prompt in prompts)))

    return asyncio.run(run())
