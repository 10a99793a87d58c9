"""The rule of thumb that is told everywhere: parameters × bytes per weight × 1.2 + KV + operating system.

Kept for comparison; its 1.2 stands for everything that ``estimate`` counts one by one. Its KV part takes
every attention head for a KV head, two bytes a value, and no sliding window.
"""

import msgspec

from octavo.core.gguf import Description
from octavo.core.memory.types import Estimate

FACTOR = 1.2
SYSTEM_BYTES = 2 * (1 << 30)
VALUE_BYTES = 2


class RuleOfThumb(msgspec.Struct, frozen=True, kw_only=True):
    """What the rule says, in bytes, and how far that is from the estimate (``error``: 0.5 is 50 % too much).

    The system's share is in ``total_bytes`` but not compared, since the estimate is of the model alone.
    """

    weights_bytes: int
    kv_bytes: int
    system_bytes: int
    total_bytes: int
    exact_bytes: int
    error: float


def rule_of_thumb(facts: Description, estimate: Estimate) -> RuleOfThumb:
    """Apply the rule to a model and compare it with the estimate."""
    weights = int(facts.parameters * facts.bits_per_weight / 8 * FACTOR)
    cells = estimate.config.context or estimate.n_ctx
    kv = 2 * (facts.layers or 0) * (facts.embedding_length or 0) * VALUE_BYTES * cells
    exact = estimate.private_bytes + estimate.mapped_bytes
    return RuleOfThumb(
        weights_bytes=weights,
        kv_bytes=kv,
        system_bytes=SYSTEM_BYTES,
        total_bytes=weights + kv + SYSTEM_BYTES,
        exact_bytes=exact,
        error=(weights + kv - exact) / exact if exact else 0.0,
    )
