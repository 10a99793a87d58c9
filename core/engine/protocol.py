"""The messages between the service and a worker.

Each is a frame (core/prompts/framing.py). Commands go down the worker's standard input, reports come up its
standard output; a worker's log lines are reports as well.
"""

from typing import Literal

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.errors import ErrorReport
from octavo.core.memory.figures import GivenBackKind, KvFigures, PinKind
from octavo.core.memory.layout import PageRange
from octavo.core.prompts.framing import pack
from octavo.core.prompts.messages import Segment

PROTOCOL_VERSION = 2

FinishReason = Literal["stop", "length", "cancelled"]


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen; a temperature of 0 is greedy. ``seed`` None draws one and reports it.

    A given seed starts from an empty cache when nothing else runs: the same request then gives the same
    reply.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logit_bias: dict[int, float] = {}
    grammar: str | None = None


# ---- commands, service to worker


class Command(msgspec.Struct, frozen=True, tag_field="do"):
    """Something a worker is asked to do."""


class TensorPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a tensor lies: bytes ``start`` to ``stop`` of file ``file``.

    ``is_unread``: hardly a page of it is read by an active model, as of an embedding table that is no output.
    """

    name: str
    file: int
    start: int
    stop: int
    is_unread: bool = False


class Load(Command, frozen=True, tag="load"):
    """Load the model; the first command, once.

    ``files`` are all its parts and ``tensors`` what lies in them, for giving pages back; ``drops_unread``
    also drops those that are hardly read from the page cache, for a model that does not fit.
    """

    path: str
    config: LoadConfig
    files: list[str] = []
    tensors: list[TensorPlace] = []
    drops_unread: bool = False
    version: int = PROTOCOL_VERSION


class Generate(Command, frozen=True, tag="generate"):
    """Continue a prompt, given as segments or as token ids.

    ``max_tokens`` None means up to the context's end. ``ends`` are written forms of tokens that end a turn,
    beside those that the model names; what is no single token is a stop string. ``ignore_end``: none ends it.
    """

    request: str
    prompt: list[Segment]
    tokens: list[int] | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: list[str] = []
    ends: list[str] = []
    client: str = ""
    ignore_end: bool = False


class Cancel(Command, frozen=True, tag="cancel"):
    """Stop a request, also in a prefill or in the queue."""

    request: str


class Tokenize(Command, frozen=True, tag="tokenize"):
    """Turn segments into token ids."""

    request: str
    prompt: list[Segment]


class Warm(Command, frozen=True, tag="warm"):
    """Bring pages into memory, in chunks; ``Cancel`` stops it."""

    request: str
    ranges: list[PageRange]


class Drop(Command, frozen=True, tag="drop"):
    """Drop pages from memory; they come back from the disk when they are needed."""

    request: str
    ranges: list[PageRange]


class Pin(Command, frozen=True, tag="pin"):
    """Keep these pages in memory instead of those that were kept; none: keep no pages any more."""

    request: str
    ranges: list[PageRange]


class Shutdown(Command, frozen=True, tag="shutdown"):
    """End the process."""


AnyCommand = Load | Generate | Cancel | Tokenize | Warm | Drop | Pin | Shutdown


# ---- reports, worker to service


class Report(msgspec.Struct, frozen=True, tag_field="is"):
    """Something a worker tells."""


class LoadShare(Report, frozen=True, tag="load_share"):
    """``share`` of the weights is read, from 0 to 1."""

    share: float


class Ready(Report, frozen=True, tag="ready"):
    """The model is loaded; what llama.cpp made of the wishes (``effective``), and the vocabulary's control
    tokens.

    ``context`` tokens are usable by one request, ``kv_size`` cells exist in all. ``load_disk_bytes`` were
    read from a disk; ``page_control`` says why pages can't be warmed, dropped or pinned, "" when they can.
    ``anonymous_bytes`` were private just before anything was given back; None: the system does not tell.
    """

    context: int
    kv_size: int
    trained_context: int
    vocabulary: int
    control_tokens: list[str]
    bos: str
    eos: str
    effective: dict[str, str | int | float | bool]
    load_s: float
    load_disk_bytes: int | None = None
    page_control: str = ""
    anonymous_bytes: int | None = None


class LoadRefused(Report, frozen=True, tag="load_refused"):
    """The model could not be loaded; the process ends."""

    error: ErrorReport


class Started(Report, frozen=True, tag="started"):
    """A request got a slot: ``prompt_tokens`` in all, ``cached_tokens`` of them already in the cache."""

    request: str
    slot: int
    prompt_tokens: int
    cached_tokens: int
    queue_s: float
    seed: int


class Prefilled(Report, frozen=True, tag="prefilled"):
    """``done`` of ``total`` prompt tokens are read."""

    request: str
    done: int
    total: int


class Text(Report, frozen=True, tag="text"):
    """New text, whole characters only; ``tokens`` are what was sampled since the last such report."""

    request: str
    text: str
    tokens: list[int]


class Timings(msgspec.Struct, frozen=True):
    """Where the time of a request went, in seconds, and what was read from a disk meanwhile.

    ``load_s`` is added by the runtime: the wait for the model. ``disk_s`` is the part of ``prefill_s`` in
    which the engine stood still for the disk. None: the system does not tell.
    """

    queue_s: float = 0.0
    prefill_s: float = 0.0
    first_token_s: float = 0.0
    decode_s: float = 0.0
    longest_gap_s: float = 0.0
    load_s: float = 0.0
    disk_s: float = 0.0
    prefill_disk_bytes: int | None = None
    decode_disk_bytes: int | None = None
    prefill_major_faults: int | None = None
    decode_major_faults: int | None = None


class Finished(Report, frozen=True, tag="finished"):
    """A request ended. ``stop_text`` is the stop string that was met, if one was."""

    request: str
    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    timings: Timings
    stop_text: str | None = None


class Failed(Report, frozen=True, tag="failed"):
    """A request ended in an error."""

    request: str
    error: ErrorReport


class Tokens(Report, frozen=True, tag="tokens"):
    """The answer to ``Tokenize``."""

    request: str
    tokens: list[int]


class SlotIdle(Report, frozen=True, tag="slot_idle"):
    """A slot is free again; ``request`` held it."""

    slot: int
    request: str


class Figures(Report, frozen=True, tag="figures"):
    """What the worker itself counts, at most 4 times a second and only when it changed.

    ``disk_bytes_total`` and ``major_faults_total`` are what decoding caused, not the load or a warm-up.
    """

    kv: KvFigures
    active: int
    queued: int
    tokens_total: int
    prompt_tokens_total: int
    disk_bytes_total: int | None = None
    major_faults_total: int | None = None


class PagesProgressed(Report, frozen=True, tag="pages_progressed"):
    """``done`` of ``total`` bytes of a ``Warm`` are in memory."""

    request: str
    done: int
    total: int


class PagesDone(Report, frozen=True, tag="pages_done"):
    """The answer to ``Warm``, ``Drop`` and ``Pin``: bytes of whole pages that it was about.

    ``kind`` is how pages are kept; ``reason`` why they are touched instead of locked.
    """

    request: str
    page_bytes: int
    kind: PinKind | None = None
    reason: str = ""


class GaveBack(Report, frozen=True, tag="gave_back"):
    """Memory went back to the system; ``text`` says what and why."""

    kind: GivenBackKind
    freed_bytes: int
    text: str


class LogLine(Report, frozen=True, tag="log"):
    """A line of llama.cpp's log; ``level`` is debug, info, warning or error."""

    level: str
    text: str


AnyReport = (
    LoadShare
    | Ready
    | LoadRefused
    | Started
    | Prefilled
    | Text
    | Finished
    | Failed
    | Tokens
    | SlotIdle
    | Figures
    | PagesProgressed
    | PagesDone
    | GaveBack
    | LogLine
)

_ENCODER = msgspec.msgpack.Encoder()


def frame(message: Command | Report) -> bytes:
    """Give the framed bytes of one message."""
    return pack(_ENCODER.encode(message))


def command_decoder() -> "msgspec.msgpack.Decoder[AnyCommand]":
    """Give a decoder of commands."""
    return msgspec.msgpack.Decoder(AnyCommand)


def report_decoder() -> "msgspec.msgpack.Decoder[AnyReport]":
    """Give a decoder of reports."""
    return msgspec.msgpack.Decoder(AnyReport)
