"""The process that renders chat templates: a template is a program out of a downloaded file, so it runs here.

It may use little memory, can't open a file or socket once it has started, and answers one job at a time; the
parent ends it when a job takes too long. It ends by itself when its standard input closes or its parent dies.
"""

import json
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import BinaryIO, cast

import jinja2.constants
import jinja2.debug  # noqa: F401  (loaded by jinja2 when a template fails: no file opens by then)
import msgspec
from jinja2 import Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError

from octavo.core.prompts import folding, lookalikes
from octavo.core.prompts.confinement import allow_processor_time, confine
from octavo.core.prompts.environment import RaisedByTemplate, Templates
from octavo.core.prompts.framing import BrokenPipeFrame, pack, read_frame
from octavo.core.prompts.jobs import Answer, Job, Json, Learn, Ready, Refused, Render, Rendered, Unlearned
from octavo.core.prompts.lookalikes import ControlTokens, Marks
from octavo.core.prompts.messages import Message, Segment

# a template may add this much to a conversation, and write each of its characters this often
OUTPUT_LIMIT = 8 * 1024 * 1024
OUTPUT_PER_INPUT = 4
TEMPLATE_LIMIT = 1024 * 1024
VOCABULARIES = 8
WORDS_LIMIT = 500

Object = dict[str, Json]


class OutputTooLong(Exception):
    """The template wrote far more than it was given."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class Renderer:
    """Does the jobs."""

    def __init__(self) -> None:
        self._templates = Templates()
        self._vocabularies: OrderedDict[bytes, ControlTokens] = OrderedDict()

    def answer(self, job: Job) -> Answer:
        """Do one job; no template makes this raise."""
        try:
            return self._learn(job) if isinstance(job, Learn) else self._render(job)
        except MemoryError:
            return Refused("memory", "it needs too much memory")
        except OutputTooLong as fault:
            return Refused("output", f"it writes more than {fault.limit:,} characters")
        except SecurityError as fault:
            return Refused("forbidden", _words(fault))
        except TemplateSyntaxError as fault:
            return Refused("broken", f"line {fault.lineno}: {_words(fault)}")
        except RaisedByTemplate as fault:
            return Refused("raised", _words(fault))
        except Exception as fault:  # whatever a template does wrong is reported, in its own words
            return Refused("broken", _words(fault) or type(fault).__name__)

    def _learn(self, job: Learn) -> Answer:
        self._vocabularies[job.key] = lookalikes.control_tokens(job.tokens)
        while len(self._vocabularies) > VOCABULARIES:
            self._vocabularies.popitem(last=False)
        return Ready()

    def _render(self, job: Render) -> Answer:
        tokens = self._vocabularies.get(job.key)
        if tokens is None:
            return Unlearned()
        self._vocabularies.move_to_end(job.key)
        if len(job.template) > TEMPLATE_LIMIT:
            return Refused("broken", f"it is longer than {TEMPLATE_LIMIT:,} characters")
        template = self._templates.compile(job.template)
        marks = _marks_for(job)
        self._templates.use(marks)
        return Rendered(_first_that_renders(_Rendering(template, job, tokens, marks)))


class _Rendering:
    """One job's template, control tokens and marks."""

    def __init__(self, template: Template, job: Render, tokens: ControlTokens, marks: Marks) -> None:
        self.job = job
        self._template = template
        self._tokens = tokens
        self._marks = marks
        self._limit = OUTPUT_LIMIT + OUTPUT_PER_INPUT * _length(job)
        self._surroundings = self._protected(job.extra) | {"tools": None}
        if job.tools:
            self._surroundings["tools"] = [self._protected(tool) for tool in job.tools]

    def segments(self, messages: Sequence[Message]) -> tuple[list[Segment], bool]:
        """Render one shape of the conversation; tell also whether some of its text is missing."""
        prefill: str | None = None
        if self.job.add_generation_prompt:
            messages, prefill = folding.split_prefill(messages)
        turns = [self._turn(message) for message in messages]
        text = _once(self.job.bos, self._text(turns))
        is_lossy = folding.loses_text([str(turn["content"] or "") for turn in _checked(turns)], text)
        if prefill is not None:
            text = _without_open_thought(text) + self._tokens.protect(prefill, self._marks)
        return lookalikes.split_segments(text, self._marks), is_lossy

    def _turn(self, message: Message) -> Object:
        return {"role": message.role} | self._protected(_as_object(message))

    def _protected(self, value: Object) -> Object:
        return cast(Object, lookalikes.protect_all(value, self._tokens, self._marks))

    def _text(self, turns: list[Object]) -> str:
        pieces: list[str] = []
        length = 0
        for piece in self._template.generate(
            **self._surroundings
            | {
                "messages": turns,
                "add_generation_prompt": self.job.add_generation_prompt,
                "bos_token": self.job.bos,
                "eos_token": self.job.eos,
            }
        ):
            length += len(piece)
            if length > self._limit:
                raise OutputTooLong(self._limit)
            pieces.append(piece)
        return "".join(pieces)


def _first_that_renders(rendering: _Rendering) -> list[Segment]:
    knows_calls = "tool_calls" in rendering.job.template
    first_fault: Exception | None = None
    lossy: list[Segment] | None = None
    for messages in folding.variants(rendering.job.messages, knows_calls=knows_calls):
        try:
            segments, is_lossy = rendering.segments(messages)
        except (MemoryError, OutputTooLong, SecurityError):
            raise
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as fault:
            first_fault = first_fault or fault
            continue
        if not is_lossy:
            return segments
        lossy = lossy or segments
    if lossy is None:
        raise first_fault or RaisedByTemplate("the conversation is empty")
    return lossy


def _checked(turns: Sequence[Object]) -> Iterator[Object]:
    return (turn for turn in turns if turn["role"] != "assistant")


def _as_object(message: Message) -> Object:
    turn: Object = {"content": message.content}
    if message.content is None and not message.tool_calls:
        turn["content"] = ""
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _parsed(call.arguments)},
            }
            for call in message.tool_calls
        ]
    given = {"tool_call_id": message.tool_call_id, "name": message.name}
    return turn | {key: value for key, value in given.items() if value is not None}


def _parsed(arguments: str) -> Json:
    try:
        return cast(Json, json.loads(arguments or "{}"))
    except ValueError:
        return arguments


def _marks_for(job: Render) -> Marks:
    said = cast(list[Json], msgspec.to_builtins(job.messages))
    return lookalikes.choose_marks(
        (job.template, job.bos, job.eos, *lookalikes.strings([said, cast(Json, job.tools), job.extra]))
    )


def _length(job: Render) -> int:
    said = cast(list[Json], msgspec.to_builtins([job.messages, job.tools, job.extra]))
    return sum(map(len, lookalikes.strings(said)))


def _once(bos: str, text: str) -> str:
    while bos and text.startswith(bos + bos):
        text = text[len(bos) :]
    return text


def _without_open_thought(text: str) -> str:
    """Take off a ``<think>`` that the template opened: the answer has already begun."""
    trimmed = text.rstrip()
    return trimmed.removesuffix("<think>") if trimmed.endswith("<think>") else text


def _words(fault: Exception) -> str:
    return str(fault)[:WORDS_LIMIT]


def serve(renderer: Renderer, commands: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until the pipe ends, or until one used up the memory."""
    decoder = msgspec.msgpack.Decoder(Job)
    answer: Answer = Ready()
    while True:
        answers.write(pack(msgspec.msgpack.encode(answer)))
        answers.flush()
        if isinstance(answer, Refused) and answer.fault == "memory":
            return
        try:
            job = decoder.decode(read_frame(commands))
        except BrokenPipeFrame:
            return
        allow_processor_time()
        answer = renderer.answer(job)


def main() -> None:
    """Load what rendering needs, confine this process, then serve."""
    renderer = Renderer()
    confine(parent=int(sys.argv[1]))
    serve(renderer, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
