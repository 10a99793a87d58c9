"""The service's side of the template helper: one small process, started, timed, ended and started again."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import msgspec

from octavo.core.errors import InvalidRequest, ServiceUnavailable, TemplateRefused
from octavo.core.prompts.framing import FRAME_LIMIT, BrokenPipeFrame, pack, receive_frame
from octavo.core.prompts.jobs import Answer, Fault, Job, Json, Learn, Refused, Render, Rendered, Unlearned
from octavo.core.prompts.messages import Message, Segment

RENDER_LIMIT_S = 2.0
START_LIMIT_S = 30.0

# a helper that is gone this soon had most likely died before the job reached it
STALE_S = 0.3

COMMAND = (sys.executable, "-P", "-m", "octavo.core.prompts.helper")

_SENTENCES: dict[Fault, str] = {
    "raised": "The model's chat template refuses this conversation: {}",
    "broken": "The model's chat template doesn't work: {}",
    "forbidden": "The model's chat template is not allowed: {}",
    "output": "The model's chat template was stopped: {}",
    "memory": "The model's chat template was stopped: {}",
    "time": "The model's chat template was stopped: {}",
    "crash": "The model's chat template was stopped: {}",
}
_HINT = "The model can be used with a built-in template."

_DECODER = msgspec.msgpack.Decoder(Answer)


class Templates:
    """Renders chat templates in a helper process, one after the other; callers queue.

    All methods belong to one event loop, best the main thread's: on Linux the helper dies with the thread
    that started it. ``command`` starts the helper; the parent's process id is added to it.
    """

    def __init__(self, command: Sequence[str] = COMMAND, *, limit_s: float = RENDER_LIMIT_S) -> None:
        self._command = tuple(command)
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The helper's process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the helper ahead of the first render."""
        async with self._turn:
            await self._running()

    async def close(self) -> None:
        """End the helper; a later render would start it again."""
        async with self._turn:
            await self._end()

    async def render(
        self,
        template: str,
        messages: Sequence[Message],
        *,
        bos: str,
        eos: str,
        control_tokens: Sequence[str],
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Json]] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> list[Segment]:
        """Turn a conversation into a prompt.

        Control tokens in people's text come back in segments with ``special`` False. A last message of the
        assistant is the beginning of the answer. A conversation that the template refuses is folded (merged
        turns, system and tool text in user turns) and tried again. Where the template writes ``bos``, it
        stands once at the very start; the tokeniser adds one only where it doesn't. ``control_tokens`` are
        those that llama.cpp marks as control; user-defined ones count in any text.

        Raises ``TemplateRefused``.
        """
        job = Render(
            template=template,
            messages=list(messages),
            bos=bos,
            eos=eos,
            key=_key(tuple(control_tokens)),
            add_generation_prompt=add_generation_prompt,
            tools=[dict(tool) for tool in tools] if tools else None,
            extra=dict(extra or {}),
        )
        body = _encoded(job)
        async with self._turn:
            answer = await self._answer(body, job.key, control_tokens)
        return _segments(answer)

    async def _answer(self, body: bytes, key: bytes, tokens: Sequence[str]) -> Answer:
        answer = await self._ask(body)
        if isinstance(answer, Unlearned):
            await self._ask(_encoded(Learn(key, list(tokens))), limit_s=START_LIMIT_S)
            answer = await self._ask(body)
        return answer

    async def _ask(self, body: bytes, *, limit_s: float | None = None) -> Answer:
        clock = asyncio.get_running_loop().time
        process = await self._running()
        began = clock()
        answer = await self._try(process, body, limit_s)
        if _is_crash(answer) and clock() - began < STALE_S:
            answer = await self._try(await self._running(), body, limit_s)
        return answer

    async def _try(self, process: asyncio.subprocess.Process, body: bytes, limit_s: float | None) -> Answer:
        limit_s = limit_s or self._limit_s
        try:
            async with asyncio.timeout(limit_s):
                answer = await _exchange(process, body)
        except TimeoutError:
            await self._end()
            return Refused("time", f"it did not finish within {limit_s:g} s")
        except (BrokenPipeFrame, ConnectionError):
            await self._end()
            return Refused("crash", "its process ended")
        except BaseException:  # a caller that gave up leaves an answer in the pipe that is nobody's
            self._kill()
            raise
        if isinstance(answer, Refused) and answer.fault == "memory":
            await self._end()
        return answer

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await self._started()
        return self._process

    async def _started(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await receive_frame(_reader(process))
        except (TimeoutError, BrokenPipeFrame) as fault:
            await _ended(process)
            raise ServiceUnavailable("The process that renders chat templates doesn't start.") from fault
        except BaseException:
            _send_kill(process)
            raise
        return process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await _ended(process)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _send_kill(process)


async def _exchange(process: asyncio.subprocess.Process, body: bytes) -> Answer:
    assert process.stdin is not None
    process.stdin.write(pack(body))
    await process.stdin.drain()
    return _DECODER.decode(await receive_frame(_reader(process)))


def _reader(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    assert process.stdout is not None
    return process.stdout


async def _ended(process: asyncio.subprocess.Process) -> None:
    _send_kill(process)
    await process.wait()


def _send_kill(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    with suppress(ProcessLookupError):
        process.kill()


def _is_crash(answer: Answer) -> bool:
    return isinstance(answer, Refused) and answer.fault == "crash"


def _segments(answer: Answer) -> list[Segment]:
    match answer:
        case Rendered(segments):
            return segments
        case Refused(fault, message):
            raise TemplateRefused(_sentence(fault, message), hint=_HINT, fault=fault)
    raise TemplateRefused(
        _SENTENCES["crash"].format("its process gave no answer."), hint=_HINT, fault="crash"
    )


def _sentence(fault: Fault, message: str) -> str:
    said = _SENTENCES[fault].format(message.rstrip())
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def _encoded(job: Job) -> bytes:
    try:
        body = msgspec.msgpack.encode(job)
    except UnicodeEncodeError as fault:
        raise InvalidRequest("The conversation holds half of a surrogate pair: no character.") from fault
    if len(body) > FRAME_LIMIT:
        raise InvalidRequest(f"The conversation is larger than {FRAME_LIMIT:,} bytes.")
    return body


@lru_cache(maxsize=16)
def _key(tokens: tuple[str, ...]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for token in tokens:
        digest.update(token.encode("utf-8", "surrogatepass") + b"\0")
    return digest.digest()
