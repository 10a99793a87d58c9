"""The values that pass between estimate, verdict, advice and every front end; all sizes are bytes."""

from typing import Literal

import msgspec

from octavo.core.config.load_config import LoadConfig

VerdictKind = Literal["resident", "pages", "wont_run"]
Confidence = Literal["exact", "close", "approximate"]


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes go. ``weights_mapped`` can be dropped and read again; all others are private."""

    weights_mapped: int = 0
    weights_private: int = 0
    kv: int = 0
    recurrent: int = 0
    compute: int = 0
    output: int = 0
    prefix_cache: int = 0
    mmproj: int = 0
    runtime: int = 0

    @property
    def private_bytes(self) -> int:
        """What must stay in memory while the model is loaded."""
        total: int = sum(msgspec.structs.astuple(self))
        return total - self.weights_mapped


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What one model needs with one configuration.

    ``hot_mapped_bytes`` are read for every token (dense: all but the embedding table; experts: the shared
    part); ``expert_bytes`` are all routed experts, of which ``expert_share`` is read for a token. ``n_ctx``
    is what llama.cpp makes of the wished context, in cells. ``reasons`` say what the confidence rests on.
    """

    model: str
    n_ctx: int
    config: LoadConfig
    components: Components
    private_bytes: int
    mapped_bytes: int
    hot_mapped_bytes: int
    expert_bytes: int = 0
    expert_share: float = 1.0
    confidence: Confidence
    reasons: list[str] = []


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a load may use. ``budget_bytes`` is what the verdict compares with.

    ``available_bytes`` is the smaller of the system's MemAvailable and what the cgroup has left; what an
    unload would return and our own cached pages are not counted twice. ``keep_free_bytes`` is the person's
    wish, for the system as a whole. ``promised_bytes`` are buffers of loaded models that they have not
    touched yet; ``mapped_in_use_bytes`` the file pages that they read for every token, which the system
    counts as available but which are no room for another model to stay resident in.
    """

    total_bytes: int
    available_bytes: int
    keep_free_bytes: int
    reclaimable_bytes: int
    promised_bytes: int = 0
    mapped_in_use_bytes: int = 0
    budget_bytes: int
    limited_by: Literal["system", "cgroup", "setting"]


class Bandwidth(msgspec.Struct, frozen=True):
    """Bytes per second that a disk was seen to give, slow and fast."""

    low: float
    high: float


class TokenRate(msgspec.Struct, frozen=True):
    """Tokens per second, as a band."""

    low: float
    high: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What will happen; ``inequality`` is the comparison in words and numbers."""

    kind: VerdictKind
    inequality: str
    disk_bytes_per_token: int = 0
    tokens_per_second: TokenRate | None = None


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something that would help: its new totals, what it costs, and the configuration that does it."""

    title: str
    cost: str
    model: str
    config: LoadConfig
    private_bytes: int
    mapped_bytes: int
    verdict: VerdictKind


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer to "will it fit?": what HTTP, command line, runtime and window show."""

    estimate: Estimate
    budget: Budget
    verdict: Verdict
    suggestions: list[Suggestion] = []
