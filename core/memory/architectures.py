"""What llama.cpp knows of architectures and doesn't read from the file: windows, recurrence, shared layers.

Sources: ``load_arch_hparams`` in llama.cpp's src/models/*.cpp, ``create_memory`` in src/llama-model.cpp and
``llm_arch_is_recurrent`` and ``llm_arch_is_hybrid`` in src/llama-arch.cpp, as vendored by llama-cpp-python
0.3.36.
"""

from dataclasses import dataclass
from enum import Enum


class WindowRule(Enum):
    """When an architecture has sliding windows at all."""

    ALWAYS = "always"
    IF_KEY = "if attention.sliding_window is in the file and not 0"
    UNLESS_ZERO = "unless attention.sliding_window is 0"


@dataclass(frozen=True, slots=True)
class Window:
    """The sliding windows of an architecture.

    Every ``period``-th layer sees everything (the first of each group with ``dense_first``, else the last),
    unless the file has a pattern of its own; ``period`` 0 means that the file must have one. ``fixed`` tokens
    stand against the file's word, ``default`` where it has none.
    """

    period: int
    rule: WindowRule = WindowRule.IF_KEY
    dense_first: bool = False
    default: int = 0
    fixed: int = 0


WINDOWS: dict[str, Window] = {
    "afmoe": Window(4),
    "cohere2": Window(4, WindowRule.ALWAYS),
    "cohere2moe": Window(4, WindowRule.ALWAYS, dense_first=True),
    "exaone-moe": Window(4, WindowRule.ALWAYS, default=128),
    "gemma2": Window(2, WindowRule.ALWAYS, default=4096),
    "gemma3": Window(6),
    "gemma3n": Window(5, WindowRule.ALWAYS),
    "gemma4": Window(0, WindowRule.ALWAYS),
    "gpt-oss": Window(2, WindowRule.ALWAYS),
    "granite_swa": Window(0, WindowRule.ALWAYS),
    "laguna": Window(4, dense_first=True),
    "llama4": Window(4, WindowRule.UNLESS_ZERO, fixed=8192),
    "maple": Window(0, WindowRule.ALWAYS),
    "mellum": Window(4),
    "mimo2": Window(0, WindowRule.ALWAYS),
    "muse-glimmer": Window(4, WindowRule.ALWAYS),
    "olmo2": Window(4),
    "plamo3": Window(8),
    "smallthinker": Window(4, dense_first=True, fixed=4096),
    "spark2_5": Window(0, WindowRule.ALWAYS),
    "step35": Window(0, WindowRule.ALWAYS),
}
EXAONE4_WINDOW = Window(4, WindowRule.ALWAYS, default=4096)
"""Only the model with 64 layers has it."""

RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
"""All layers keep a state, none attends."""

BY_HEADS = frozenset(
    {
        "jamba",
        "plamo2",
        "granitehybrid",
        "lfm2",
        "lfm2moe",
        "nemotron_h",
        "nemotron_h_moe",
        "kimi-linear",
        "bailingmoe3",
    }
)
"""Hybrids whose layers without KV heads keep a state."""

BY_INTERVAL = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "minimax-01": 8}
"""Hybrids of which every n-th layer attends, unless the file says otherwise."""

NEMOTRON = frozenset({"nemotron_h", "nemotron_h_moe"})
"""Layers with a feed-forward part neither attend nor keep a state."""

EVERYTHING_IN_EACH_LAYER = frozenset({"falcon-h1"})

LATENT = frozenset({"deepseek2", "kimi-linear", "bailingmoe3", "mistral4"})
"""Those that can keep one latent row per token in place of K and V (MLA)."""

GEMMA3N_LAYERS_WITH_KV = 20

PARALLEL = frozenset({"command-r", "cohere2", "cohere2moe"})
"""Attention and feed-forward part of a layer run side by side."""

QUERY_IS_FREED = frozenset({"phi3", "lfm2", "lfm2moe"})
"""The graph allocator reuses the place of Q within a layer."""

WITHOUT_MEMORY = frozenset(
    {
        "bert", "jina-bert-v2", "jina-bert-v3", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert",
        "modern-bert", "gemma-embedding", "wavtokenizer-dec", "dream", "llada", "llada-moe", "rnd1",
    }
)  # fmt: skip

VERIFIED = frozenset(
    {
        "llama", "llama4", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "qwen2", "qwen3", "qwen3moe",
        "qwen3next", "deepseek2", "mamba", "mamba2", "falcon-h1", "granitehybrid", "lfm2", "phi3",
        "command-r", "cohere2", "olmo2", "jamba", "nemotron_h", "rwkv7",
    }
)  # fmt: skip
"""Those of which the tests compare KV and recurrent bytes with llama.cpp's allocator, byte for byte."""

PLAIN = frozenset(
    {
        "deci", "falcon", "grok", "gpt2", "gptj", "gptneox", "mpt", "baichuan", "starcoder", "refact",
        "bloom",
        "stablelm", "qwen", "qwen2moe", "qwen2vl", "qwen3vl", "qwen3vlmoe", "phi2", "phimoe", "plamo",
        "codeshell", "orion", "internlm2", "minicpm", "minicpm3", "gemma", "starcoder2", "xverse", "dbrx",
        "olmo", "olmoe", "openelm", "arctic", "deepseek", "deepseek2-ocr", "chatglm", "glm4", "glm4moe",
        "bitnet", "jais", "jais2",
        "nemotron", "exaone", "exaone4", "granite", "granitemoe", "chameleon", "plm", "bailingmoe",
        "bailingmoe2", "dots1", "arcee", "ernie4_5", "ernie4_5-moe", "hunyuan-moe", "hunyuan-dense",
        "hunyuan_vl", "hy_v3", "smollm3", "seed_oss", "grovemoe", "apertus", "minimax-m2", "cogvlm",
        "pangu-embedded", "mistral3", "paddleocr", "llama-embed", "maincoder", "talkie",
    }
)  # fmt: skip
"""Those that have ordinary attention in each layer and nothing else."""

KNOWN = (
    PLAIN | VERIFIED | RECURRENT | BY_HEADS | LATENT | WITHOUT_MEMORY | frozenset({*WINDOWS, *BY_INTERVAL})
)

INDEXED = frozenset(
    {
        "deepseek32", "deepseek4", "glm-dsa", "glm5-next", "kimi-k3", "dots3note", "hy_v4", "minimax-m3",
        "qwen4exp",
    }
)  # fmt: skip
"""Those that keep further caches (indexers), which only the simulation counts."""
