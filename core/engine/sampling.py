"""Sampling settings to a chain of llama.cpp samplers, in llama.cpp's own order."""

import ctypes
import math
import secrets
from collections.abc import Sequence

from octavo.core.engine.llama import C, Sampler, Vocabulary
from octavo.core.engine.protocol import Sampling
from octavo.core.errors import InvalidRequest

SEED_LIMIT = 1 << 32
# llama.h, LLAMA_DEFAULT_SEED: it would draw another seed each time
RANDOM_SEED = 0xFFFFFFFF


def draw_seed(wished: int | None) -> int:
    """Give the seed to use: the wished one in 32 bits, or a drawn one that can be reported."""
    if wished is None:
        return secrets.randbelow(RANDOM_SEED)
    return wished % RANDOM_SEED


def build(sampling: Sampling, seed: int, vocabulary: Vocabulary, prompt: Sequence[int]) -> Sampler:
    """Make the chain; ``prompt`` counts for the repetition penalties. Raises ``InvalidRequest``."""
    check(sampling, vocabulary.size)
    sampler = Sampler(vocabulary)
    try:
        _add_biases(sampler, sampling, vocabulary)
        _add_penalties(sampler, sampling, prompt)
        if sampling.grammar is not None:
            _add_grammar(sampler, sampling.grammar, vocabulary)
        _add_choice(sampler, sampling, seed)
    except BaseException:
        sampler.free()
        raise
    return sampler


def check(sampling: Sampling, vocabulary_size: int) -> None:
    """Raise ``InvalidRequest`` for values that llama.cpp would abort on or that mean nothing."""
    for name in ("temperature", "top_p", "min_p", "typical_p", "repeat_penalty"):
        value = getattr(sampling, name)
        if not math.isfinite(value) or value < 0:
            raise InvalidRequest(f"{name} is {value}; it must be a number from 0 up.", param=name)
    for name in ("presence_penalty", "frequency_penalty"):
        if not math.isfinite(getattr(sampling, name)):
            raise InvalidRequest(f"{name} must be a finite number.", param=name)
    if sampling.repeat_penalty == 0:
        raise InvalidRequest("repeat_penalty is 0; 1 means none.", param="repeat_penalty")
    for token in sampling.logit_bias:
        if not 0 <= token < vocabulary_size:
            raise InvalidRequest(
                f"logit_bias names token {token}; there are {vocabulary_size}.", param="logit_bias"
            )


def _add_biases(sampler: Sampler, sampling: Sampling, vocabulary: Vocabulary) -> None:
    if sampling.logit_bias:
        rows = [C.llama_logit_bias(token, bias) for token, bias in sampling.logit_bias.items()]
        array = (C.llama_logit_bias * len(rows))(*rows)
        sampler.add(C.llama_sampler_init_logit_bias(vocabulary.size, len(rows), array), "logit_bias")


def _add_penalties(sampler: Sampler, sampling: Sampling, prompt: Sequence[int]) -> None:
    none = (1.0, 0.0, 0.0)
    penalties = (sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty)
    if penalties == none or sampling.repeat_last_n == 0:
        return
    span = sampling.repeat_last_n if sampling.repeat_last_n > 0 else len(prompt) or 64
    penalty = C.llama_sampler_init_penalties(span, *penalties)
    for token in prompt[-span:]:
        C.llama_sampler_accept(penalty, token)
    sampler.add(penalty, "penalties")


def _add_grammar(sampler: Sampler, grammar: str, vocabulary: Vocabulary) -> None:
    sampler.add(C.llama_sampler_init_grammar(vocabulary.handle, grammar.encode(), b"root"), "grammar")


def _add_choice(sampler: Sampler, sampling: Sampling, seed: int) -> None:
    if sampling.temperature == 0:
        sampler.add(C.llama_sampler_init_greedy(), "greedy choice")
        return
    if sampling.top_k > 0:
        sampler.add(C.llama_sampler_init_top_k(sampling.top_k), "top_k")
    if sampling.typical_p < 1:
        sampler.add(C.llama_sampler_init_typical(ctypes.c_float(sampling.typical_p), 1), "typical_p")
    if sampling.top_p < 1:
        sampler.add(C.llama_sampler_init_top_p(ctypes.c_float(sampling.top_p), 1), "top_p")
    if sampling.min_p > 0:
        sampler.add(C.llama_sampler_init_min_p(ctypes.c_float(sampling.min_p), 1), "min_p")
    sampler.add(C.llama_sampler_init_temp(ctypes.c_float(sampling.temperature)), "temperature")
    sampler.add(C.llama_sampler_init_dist(seed), "seed")
