"""What the memory of a model depends on, read once from its header.

Names of keys: llama.cpp's src/llama-arch.cpp; their defaults: ``load_hparams`` in src/llama-model.cpp.
"""

from collections import Counter
from dataclasses import dataclass

from octavo.core.gguf import Header
from octavo.core.gguf.metadata import ArraySkipped
from octavo.core.memory import architectures as known
from octavo.core.memory.types import Confidence
from octavo.core.memory.weights import Weights, read_weights


@dataclass(frozen=True, slots=True)
class KvLayer:
    """The cache of one attention layer, in values per token; ``value_width`` 0 where K holds all (MLA)."""

    key_width: int
    value_width: int
    is_windowed: bool


@dataclass(frozen=True, slots=True)
class Widths:
    """Sizes that the compute buffer depends on, in values per token; the largest where layers differ."""

    embedding: int
    feed_forward: int
    heads: int
    query: int
    key: int
    value: int
    experts: int
    experts_used: int
    expert_forward: int
    shared_forward: int
    inner: int
    state: int
    groups: int
    ssm_heads: int
    per_layer_input: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What the memory of a model depends on.

    ``kv_layers`` counts equal layers; ``window`` is in tokens, 0 for none; ``transposed_value_width`` is what
    V takes in every layer without flash attention. ``conv_state`` and ``ssm_state`` are float32 values per
    sequence and recurrent layer.
    """

    name: str
    architecture: str
    layers: int
    vocabulary: int
    trained_context: int
    kv_layers: tuple[tuple[KvLayer, int], ...]
    transposed_value_width: int
    window: int
    has_window_cache: bool
    recurrent_layers: int
    conv_state: int
    ssm_state: int
    has_flash_attention: bool
    widths: Widths
    weights: Weights
    confidence: Confidence
    reasons: tuple[str, ...]


def read_shape(header: Header) -> Shape:
    """Read the shape from a header (of a split model: the joined one); whatever is missing counts as 0."""
    facts = _Facts(header)
    layers = facts.layers
    confidence, reasons = _confidence(facts, len(header.files))
    kv = [layer for i in range(facts.all_layers) if (layer := facts.kv_layer(i))]
    recurrent = sum(facts.is_recurrent(i) for i in range(layers))
    return Shape(
        name=header.name,
        architecture=facts.architecture,
        layers=layers,
        vocabulary=facts.vocabulary,
        trained_context=facts.whole("context_length"),
        kv_layers=tuple(Counter(kv).items()),
        transposed_value_width=max((facts.value_width(i) for i in range(facts.all_layers)), default=0),
        window=facts.window,
        has_window_cache=facts.has_window_cache,
        recurrent_layers=recurrent,
        conv_state=facts.conv_state if recurrent else 0,
        ssm_state=facts.ssm_state if recurrent else 0,
        has_flash_attention=facts.architecture != "grok",
        widths=facts.widths(),
        weights=read_weights(header, facts.skipped_layers),
        confidence=confidence,
        reasons=reasons,
    )


def skipped_layers(header: Header) -> range:
    """Give the layers at the end that are in the file but not computed (``nextn_predict_layers``)."""
    return _Facts(header).skipped_layers


def _confidence(facts: "_Facts", shards: int) -> tuple[Confidence, tuple[str, ...]]:
    name = facts.architecture or "no architecture"
    reasons: list[str] = []
    if name in known.INDEXED:
        reasons.append(f"{name} keeps further caches that only a simulation counts")
    elif name not in known.KNOWN:
        reasons.append(f"{name} is not known here; it is counted like ordinary attention")
    if facts.layers <= 0 or facts.whole("embedding_length") <= 0:
        reasons.append("the header does not tell its dimensions")
    if facts.shard_count > shards:
        reasons.append(
            f"{shards} of {facts.shard_count} parts were read; the others are counted by file size"
        )
    if reasons:
        return "approximate", tuple(reasons)
    if name not in known.VERIFIED:
        return "close", (
            f"the formula for {name} is llama.cpp's, but no test compares it with its allocator",
        )
    return "exact", ()


class _Facts:
    """The header's figures under the architecture's own keys, with llama.cpp's defaults."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.architecture = header.architecture or ""
        shard = header.shard
        self.shard_count = shard[1] if shard else 1
        self.all_layers = min(max(self.whole("block_count"), 0), 512)  # LLAMA_MAX_LAYERS
        nextn = self.whole("nextn_predict_layers")
        self.layers = self.all_layers - nextn if 0 <= nextn < self.all_layers else self.all_layers
        self.skipped_layers = range(self.layers, self.all_layers)
        self.vocabulary = self._vocabulary()
        self._heads = self._per_layer("attention.head_count", 0)
        self._kv_heads = self._per_layer("attention.head_count_kv", self._heads)
        self._forward = self._per_layer("feed_forward_length", 0)
        self._read_head_sizes()
        self._read_windows()
        self._recurrent = self._recurrent_layers()

    def whole(self, key: str, default: int = 0) -> int:
        """Give one of the architecture's own whole numbers; of an array, the largest."""
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, tuple):
            value = max((item for item in value if isinstance(item, int)), default=None)
        return int(value) if isinstance(value, int) else default

    def is_recurrent(self, layer: int) -> bool:
        """Tell whether a layer keeps a state."""
        return self._recurrent[layer]

    def value_width(self, layer: int) -> int:
        """Give V's values per token in one layer."""
        return self._sizes(layer)[1] * self._kv_heads[layer]

    def kv_layer(self, layer: int) -> KvLayer | None:
        """Give the cache of one layer; None where it has none of its own."""
        if not self._owns_kv(layer):
            return None
        width = self._sizes(layer)[0] * self._kv_heads[layer]
        return KvLayer(width, 0 if self._is_latent else self.value_width(layer), self._windowed[layer])

    def widths(self) -> Widths:
        """Give the sizes that the compute buffer depends on."""
        every = range(self.layers)
        sizes = [self._sizes(i) for i in every]
        experts = self.whole("expert_count")
        return Widths(
            embedding=self.whole("embedding_length"),
            feed_forward=max(self._forward[: self.layers], default=0) if self._has_dense_part() else 0,
            heads=max(self._heads[: self.layers], default=0),
            query=max((sizes[i][0] * self._heads[i] for i in every), default=0),
            key=max((sizes[i][0] * self._kv_heads[i] for i in every), default=0),
            value=max((sizes[i][1] * self._kv_heads[i] for i in every), default=0),
            experts=experts,
            experts_used=self.whole("expert_used_count"),
            expert_forward=self.whole("expert_feed_forward_length", max(self._forward, default=0))
            if experts
            else 0,
            shared_forward=self._shared_forward(),
            inner=self.whole("ssm.inner_size"),
            state=self.whole("ssm.state_size"),
            groups=self.whole("ssm.group_count"),
            ssm_heads=self.whole("ssm.time_step_rank"),
            per_layer_input=self.whole("embedding_length_per_layer_input"),
        )

    @property
    def conv_state(self) -> int:
        """Values of the convolution's state; ``llama_hparams::n_embd_r`` in src/llama-hparams.cpp."""
        width, kernel = self.whole("embedding_length"), self.whole("ssm.conv_kernel")
        if self.whole("wkv.head_size"):
            return self.whole("token_shift_count", 2) * width
        if self.whole("shortconv.l_cache"):
            return width * (self.whole("shortconv.l_cache") - 1)
        if self.whole("kda.head_dim"):
            return 3 * (kernel - 1 if kernel else 3) * self._heads[0] * self.whole("kda.head_dim")
        rows = self.whole("ssm.inner_size") + 2 * self.whole("ssm.group_count") * self.whole("ssm.state_size")
        return max(kernel - 1, 0) * rows

    @property
    def ssm_state(self) -> int:
        """Values of the layer's own state; ``llama_hparams::n_embd_s`` in src/llama-hparams.cpp."""
        if self.whole("wkv.head_size"):
            return self.whole("embedding_length") * self.whole("wkv.head_size")
        if size := self.whole("kda.head_dim"):
            return size * size * self._heads[0]
        if self.architecture == "minimax-01":
            return self._sizes(0)[0] ** 2 * self._heads[0]
        return self.whole("ssm.state_size") * self.whole("ssm.inner_size")

    def _vocabulary(self) -> int:
        match self._header.metadata.get("tokenizer.ggml.tokens"):
            case ArraySkipped(count=count):
                return count
            case tuple(tokens):
                return len(tokens)
        return self.whole("vocab_size")

    def _per_layer(self, key: str, default: int | list[int]) -> list[int]:
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        count = max(self.all_layers, 1)
        if isinstance(value, tuple):
            items = [int(item) if isinstance(item, int) else 0 for item in value]
            return (items + [0] * count)[:count]
        if isinstance(value, int):
            return [value] * count
        return default if isinstance(default, list) else [default] * count

    def _read_head_sizes(self) -> None:
        heads = self._heads[0]
        usual = self.whole("embedding_length") // heads if heads > 0 else 0
        self._key_size = self.whole("attention.key_length", usual) if heads > 0 else 0
        self._value_size = self.whole("attention.value_length", usual) if heads > 0 else 0
        self._window_key_size = self.whole("attention.key_length_swa", self._key_size)
        self._window_value_size = self.whole("attention.value_length_swa", self._value_size)
        mla = self.whole("attention.key_length_mla"), self.whole("attention.value_length_mla")
        self._is_latent = all(mla) and self.architecture in known.LATENT | known.INDEXED

    def _sizes(self, layer: int) -> tuple[int, int]:
        if self._windowed and self._windowed[layer]:
            return self._window_key_size, self._window_value_size
        return self._key_size, self._value_size

    def _read_windows(self) -> None:
        self._windowed = [False] * max(self.all_layers, 1)
        self.window, self.has_window_cache = 0, False
        said = self.whole("attention.sliding_window", -1)
        if self.architecture in ("lfm2", "lfm2moe") and said > 0:
            self.window, self.has_window_cache = said, True
            self._windowed = [count > 0 for count in self._kv_heads]
        rule = self._window_rule()
        if rule is None or not _applies(rule, said):
            return
        self.window = rule.fixed or (said if said >= 0 else rule.default)
        self._windowed = self._pattern(rule)
        self.has_window_cache = any(self._windowed)

    def _window_rule(self) -> known.Window | None:
        if self.architecture == "exaone4" and self.layers == 64:
            return known.EXAONE4_WINDOW
        return known.WINDOWS.get(self.architecture)

    def _pattern(self, rule: known.Window) -> list[bool]:
        """Give which layers are windowed; ``set_swa_pattern`` in src/llama-hparams.cpp."""
        said = self._header.metadata.get(f"{self.architecture}.attention.sliding_window_pattern")
        count = max(self.all_layers, 1)
        if isinstance(said, tuple):
            return ([bool(item) for item in said] + [False] * count)[:count]
        period = int(said) if isinstance(said, int) else rule.period
        if period == 0:
            return [i < self.layers for i in range(count)]
        dense = 0 if rule.dense_first else period - 1
        return [i < self.layers and i % period != dense for i in range(count)]

    def _recurrent_layers(self) -> list[bool]:
        count, name = max(self.all_layers, 1), self.architecture
        if name in known.RECURRENT | known.EVERYTHING_IN_EACH_LAYER:
            return [True] * count
        if name in known.NEMOTRON:
            return [i < self.layers and not self._kv_heads[i] and not self._forward[i] for i in range(count)]
        if name in known.BY_HEADS:
            return [i < self.layers and self._kv_heads[i] == 0 for i in range(count)]
        if name in known.BY_INTERVAL:
            return self._by_interval(count)
        return [False] * count

    def _by_interval(self, count: int) -> list[bool]:
        said = self._header.metadata.get(f"{self.architecture}.attention.recurrent_layers")
        if isinstance(said, tuple):
            return ([bool(item) for item in said] + [False] * count)[:count]
        interval = self.whole("full_attention_interval", known.BY_INTERVAL[self.architecture]) or 1
        return [i < self.layers and (i + 1) % interval != 0 for i in range(count)]

    def _owns_kv(self, layer: int) -> bool:
        name = self.architecture
        if name in known.RECURRENT | known.WITHOUT_MEMORY or layer >= self.layers:
            return False
        if name in known.NEMOTRON and self._forward[layer]:
            return False
        if self._recurrent[layer] and name not in known.EVERYTHING_IN_EACH_LAYER:
            return False
        if name == "gemma3n":
            return layer < known.GEMMA3N_LAYERS_WITH_KV
        return name != "gemma4" or layer < self.all_layers - self.whole("attention.shared_kv_layers")

    def _has_dense_part(self) -> bool:
        """Tell whether any layer has a feed-forward part that is not routed."""
        names = (tensor.name for tensor in self._header.tensors)
        return any(name.endswith(("ffn_up.weight", "ffn_down.weight")) for name in names)

    def _shared_forward(self) -> int:
        width = self.whole("expert_shared_feed_forward_length")
        if width or not self.whole("expert_shared_count"):
            return width
        return self.whole("expert_shared_count") * self.whole("expert_feed_forward_length")


def _applies(rule: known.Window, said: int) -> bool:
    match rule.rule:
        case known.WindowRule.IF_KEY:
            return said > 0
        case known.WindowRule.UNLESS_ZERO:
            return said != 0
    return True
