"""The worker on the two real models: right tokens, unmixed streams, cancels, crashes."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from octavo.core.config.load_config import FlashAttention, LoadConfig, LoadMode
from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import Generate, Load, Prefilled, Sampling, Started, Text
from octavo.core.errors import ContextLengthExceeded, InvalidRequest, LoadFailed, WorkerCrashed, WrongCpuBuild
from octavo.core.prompts.messages import Segment
from tests.core.engine.real_engine import GREEDY, ask, real_engine

HERE = Path(__file__).parent
PROMPT = "The history of printing began when people cut letters into wood. An octavo is a book whose sheets"


def run_json(script: str, *arguments: object) -> dict[str, object]:
    """Run one of the scripts beside this file and give the JSON that it prints."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("repack", [True, False], ids=["as Llama repacks", "without repacking"])
@pytest.mark.parametrize("name", ["smollm2", "gemma"])
def test_greedy_tokens_equal_the_reference(
    name: str, repack: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model = request.getfixturevalue(name)
    wanted = run_json("reference.py", model, PROMPT, 64, "repack" if repack else "plain")

    async def ours() -> tuple[list[int], list[int]]:
        async with real_engine(model, tmp_path, repack=repack) as engine:
            prompt = await engine.tokenize([Segment(PROMPT, True)])
            return prompt, (await ask(engine, PROMPT, 64, ignore_end=True)).tokens

    prompt, made = asyncio.run(ours())
    assert prompt == wanted["prompt"]
    assert len(made) == 64
    assert made == wanted["made"]


def test_eight_streams_on_four_slots_are_each_as_if_alone(smollm2: Path, tmp_path: Path) -> None:
    """Each prompt repeats a marker of its own, so that every step has a clear winner (by 2 logits and more).

    Where two tokens are all but equal, llama.cpp's rounding decides; it depends on the order of the cells.
    """
    markers = ["apple", "river", "stone", "tiger", "cloud", "piano", "lemon", "eagle"]
    prompts = [", ".join([marker] * 12) + "," for marker in markers]

    async def compare() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            alone = [await ask(engine, prompt, 64, ignore_end=True) for prompt in prompts]
        async with real_engine(smollm2, tmp_path) as engine:
            together = await asyncio.gather(*(ask(engine, prompt, 64, ignore_end=True) for prompt in prompts))
        assert [answer.tokens for answer in together] == [answer.tokens for answer in alone]
        for marker, answer in zip(markers, together, strict=True):
            assert {word for word in answer.text.replace(",", " ").split() if word in markers} == {marker}
            assert answer.finished is not None
            assert answer.finished.completion_tokens == 64
        assert {answer.started.slot for answer in together if answer.started} == {0, 1, 2, 3}

    asyncio.run(compare())


def test_batched_gemma_agrees_with_single_runs_teacher_forced(gemma: Path) -> None:
    """Its kernels differ by batch size, so equality can't be had; agreement can."""
    found = run_json("teacher.py", gemma, 8, 64)
    print(found)
    assert (found["steps"], found["streams"]) == (8 * 64, 4)
    assert float(str(found["equal"])) >= 0.94
    assert float(str(found["kl"])) <= 0.01


def test_a_stream_flows_while_a_long_prompt_is_read(smollm2: Path, tmp_path: Path) -> None:
    async def watch() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            order: list[str] = []
            capped: list[float] = []
            is_running = asyncio.Event()

            async def stream() -> float:
                answer = Generate(
                    "stream", [Segment("Once", True)], sampling=GREEDY, max_tokens=120, ignore_end=True
                )
                longest, last = 0.0, 0.0
                async for report in engine.generate(answer):
                    if isinstance(report, Text):
                        now = time.monotonic()
                        longest, last = max(longest, now - last if last else 0.0), now
                        order.append("token")
                        if len(order) == 5:
                            is_running.set()
                return longest

            async def prefill() -> None:
                await is_running.wait()
                command = Generate("long", [Segment("word " * 1500, True)], sampling=GREEDY, max_tokens=1)
                last = 0.0
                async for report in engine.generate(command):
                    if isinstance(report, Prefilled):
                        now = time.monotonic()
                        capped.extend([now - last] if last else [])
                        last = now
                        order.append("step")

            longest, _ = await asyncio.gather(stream(), prefill())
            step = statistics.median(capped)
            print(
                print(
                    f"longest gap {longest * 1e3:.0f} ms = {longest / step:.2f} steps of {step * 1e3:.0f} ms"
                )
            )
            steps = [place for place, what in enumerate(order) if what == "step"]
            assert len(steps) >= 1500 // 127, "no mixed step is larger than its cap"
            between = [order[start:stop].count("token") for start, stop in itertools.pairwise(steps)]
            assert set(between) == {1}, "each mixed step carries one token of the stream"

    asyncio.run(watch())


async def _idle_after(engine: Engine, request: str, since: float) -> float:
    async with asyncio.timeout(20):
        while request not in engine.idle_at:
            await asyncio.sleep(0.001)
    return engine.idle_at[request] - since


def test_cancel_in_a_prefill_stops_within_it(smollm2: Path, tmp_path: Path) -> None:
    async def cancel() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            command = Generate("long", [Segment("word " * 1900, True)], sampling=GREEDY, max_tokens=10)
            async with contextlib.aclosing(engine.generate(command)) as reports:
                async for report in reports:
                    if isinstance(report, Started):
                        await asyncio.sleep(0.2)  # now llama.cpp is in the middle of a batch
                        break
                closed = time.monotonic()
            print(f"slot idle {1e3 * await _idle_after(engine, 'long', closed):.0f} ms after the cancel")
            again = await ask(engine, "word " * 20, 4)
            assert again.finished is not None
            assert again.finished.completion_tokens == 4

    asyncio.run(cancel())


def test_a_neighbour_of_a_cancelled_prefill_goes_on(smollm2: Path, tmp_path: Path) -> None:
    """That it loses no token is shown exactly in test_scheduler.py; rounding differs in a larger batch."""

    async def cancel() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            stream = asyncio.create_task(ask(engine, PROMPT, 60, ignore_end=True))
            for number in range(3):
                command = Generate(
                    f"long{number}", [Segment("word " * 900, True)], sampling=GREEDY, max_tokens=10
                )
                async with contextlib.aclosing(engine.generate(command)) as reports:
                    async for report in reports:
                        if isinstance(report, Started):
                            await asyncio.sleep(0.15)
                            break
            answer = await stream
            assert len(answer.tokens) == 60
            assert answer.text.isprintable() or "\n" in answer.text

    asyncio.run(cancel())


def test_a_seed_repeats_whatever_was_asked_in_between(smollm2: Path, tmp_path: Path) -> None:
    async def draw() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            drawn: dict[str, set[tuple[int, ...]]] = {}
            for prompt in ["silver 78x y", "blue 12", "😀😃😄", PROMPT] * 4:
                answer = await ask(engine, prompt, 16, sampling=Sampling(seed=5), ignore_end=True)
                drawn.setdefault(prompt, set()).add(tuple(answer.tokens))
                await ask(engine, f"{prompt} and more", 8)
            assert [len(answers) for answers in drawn.values()] == [1, 1, 1, 1]

    asyncio.run(draw())


def test_a_seed_is_repeated_and_reported(smollm2: Path, tmp_path: Path) -> None:
    async def draw() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            warm = Sampling(temperature=1.0, seed=7)
            one, two = [await ask(engine, PROMPT, 20, sampling=warm) for _ in range(2)]
            assert one.tokens == two.tokens
            assert one.started is not None
            assert one.started.seed == 7
            other = await ask(engine, PROMPT, 20, sampling=Sampling(temperature=1.0))
            assert other.started is not None
            assert other.started.seed != 7

    asyncio.run(draw())


def test_a_grammar_forces_and_a_bad_one_is_refused(smollm2: Path, tmp_path: Path) -> None:
    async def force() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            answer = await ask(engine, "Is it so?", 10, sampling=Sampling(grammar='root ::= "yes 🫩"'))
            assert answer.text == "yes 🫩"
            with pytest.raises(InvalidRequest, match="grammar"):
                await ask(engine, "x", 2, sampling=Sampling(grammar="root ::= (("))
            with pytest.raises(InvalidRequest, match="temperature"):
                await ask(engine, "x", 2, sampling=Sampling(temperature=float("nan")))

    asyncio.run(force())


def test_a_prompt_over_the_context_names_both_numbers(smollm2: Path, tmp_path: Path) -> None:
    async def overflow() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            with pytest.raises(ContextLengthExceeded) as caught:
                await ask(engine, "word " * 9000, 4)
            assert caught.value.details == {"n_prompt_tokens": 9001, "n_ctx": 2048}
            almost = await ask(engine, "word " * 2039, 100, ignore_end=True)
            assert almost.finished is not None
            assert almost.finished.reason == "length"
            assert almost.finished.prompt_tokens + almost.finished.completion_tokens == 2048

    asyncio.run(overflow())


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGKILL, WorkerCrashed), (signal.SIGILL, WrongCpuBuild)]
)
def test_c08_c13_a_dying_worker_ends_its_streams_with_a_typed_error(
    number: signal.Signals, kind: type[WorkerCrashed], smollm2: Path, tmp_path: Path
) -> None:
    async def kill() -> None:
        async with real_engine(smollm2, tmp_path) as engine:
            command = Generate("a", [Segment(PROMPT, True)], sampling=GREEDY, max_tokens=500, ignore_end=True)
            pid = engine.pid
            assert pid is not None
            with pytest.raises(kind):
                async for report in engine.generate(command):
                    if isinstance(report, Text):
                        os.kill(pid, number)
            assert not psutil.pid_exists(pid)
            with pytest.raises(kind):
                await ask(engine, PROMPT, 2)

    asyncio.run(asyncio.wait_for(kill(), 60))


def test_c09_a_load_that_is_called_off_ends_at_once(gemma: Path, tmp_path: Path) -> None:
    async def call_off() -> None:
        config = LoadConfig(context=32768, threads=1, load_mode=LoadMode.NONE)
        engine = Engine(Load(str(gemma), config), tmp_path / "log", lambda _: None)
        task = asyncio.create_task(engine.start())
        await asyncio.sleep(0.3)
        pid, started = engine.pid, time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 2
        assert pid is not None
        assert not psutil.pid_exists(pid)
        async with real_engine(gemma, tmp_path) as again:
            assert (await ask(again, "1, 2, 3, 4,", 6)).text == " 5, 6,"

    asyncio.run(asyncio.wait_for(call_off(), 60))


def test_c12_a_window_cache_gives_the_same_text_as_a_fresh_load(gemma: Path, tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(400)]
    long, branch = " ".join(words), " ".join(words[:220]) + " and now 1, 2, 3, 4,"

    async def compare() -> None:
        async with real_engine(gemma, tmp_path) as engine:
            fresh = await ask(engine, branch, 16, ignore_end=True)
        async with real_engine(gemma, tmp_path, slots=1) as engine:
            first = await ask(engine, long, 8, ignore_end=True)
            branched = await ask(engine, branch, 16, ignore_end=True)
            again = await ask(engine, branch, 16, ignore_end=True)
        assert first.started is not None
        assert first.started.prompt_tokens > 1024  # more than its window of 512 cells and a batch
        assert branched.tokens == again.tokens == fresh.tokens

    asyncio.run(compare())


def test_what_llama_cpp_refuses_is_a_typed_error_with_its_words(smollm2: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(smollm2.read_bytes()[:4096])

    async def load() -> None:
        with pytest.raises(LoadFailed) as caught:
            async with real_engine(cut, tmp_path):
                pass
        assert str(cut) in caught.value.message
        assert "failed to load model" not in caught.value.message
        print(caught.value)

    asyncio.run(load())


def test_c04_quantised_keys_work_without_flash_attention(smollm2: Path, tmp_path: Path) -> None:
    async def load() -> None:
        async with real_engine(smollm2, tmp_path, kv_k="q8_0", flash_attention=FlashAttention.OFF) as engine:
            assert len((await ask(engine, PROMPT, 8)).tokens) == 8
        async with real_engine(smollm2, tmp_path, kv_k="q8_0", kv_v="q8_0") as engine:
            assert len((await ask(engine, PROMPT, 8)).tokens) == 8

    asyncio.run(load())


def test_the_worker_dies_with_the_process_that_started_it(smollm2: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from tests.core.engine.real_engine import real_engine\n"
        "async def main():\n"
        "    async with real_engine(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])) as engine:\n"
        "        print(engine.pid, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(smollm2), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait(10)
        psutil.wait_procs([worker], timeout=10)
        assert not worker.is_running()
    finally:
        parent.kill()
        parent.communicate(timeout=10)
