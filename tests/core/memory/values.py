"""Made-up estimates and budgets, in MB."""

from octavo.core.config.load_config import LoadConfig
from octavo.core.memory.budget import fixed
from octavo.core.memory.types import Budget, Components, Confidence, Estimate

MB = 1_000_000
KV_PER_TOKEN = 100_000
WIDTHS = {"f32": 2.0, "f16": 1.0, "bf16": 1.0, "q8_0": 34 / 64, "q4_0": 18 / 64}


def estimated(
    config: LoadConfig | None = None,
    *,
    mapped: int = 600,
    experts: int = 0,
    share: float = 1.0,
    runtime: int = 40,
    confidence: Confidence = "exact",
) -> Estimate:
    """Give the estimate of a model whose cache takes 100 kB per token at f16 and slot-shared cells."""
    config = config or LoadConfig(context=1000)
    context = config.context or 1000
    kv = int(context * KV_PER_TOKEN * WIDTHS[config.kv_k])
    parts = Components(
        weights_mapped=(mapped + experts) * MB,
        kv=kv,
        compute=config.micro_batch * 50_000,
        runtime=runtime * MB,
    )
    return Estimate(
        model="acme/made-up",
        n_ctx=context,
        config=config,
        components=parts,
        private_bytes=parts.private_bytes,
        mapped_bytes=parts.weights_mapped,
        hot_mapped_bytes=mapped * MB,
        expert_bytes=experts * MB,
        expert_share=share,
        confidence=confidence,
    )


def budget(megabytes: int) -> Budget:
    """Give a budget of so much."""
    return fixed(megabytes * MB)
