"""One configuration, one resolver."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.config.load_config import BOUNDS, CHOICES, FlashAttention, LoadConfig, resolve
from octavo.core.errors import InvalidConfig


def test_the_last_layer_wins_and_is_named() -> None:
    resolved = resolve(
        ("fitted", {"context": 4096, "threads": 3}), ("settings", {"context": 2048}), ("request", {})
    )
    assert resolved.config.context == 2048
    assert (resolved.reasons["context"], resolved.reasons["threads"]) == ("settings", "fitted")
    assert resolved.reasons["slots"] == "built-in default"


def test_none_means_not_said() -> None:
    assert resolve(("a", {"context": 4096}), ("b", {"context": None})).config.context == 4096


def test_c04_a_quantised_value_cache_turns_flash_attention_on_and_says_so() -> None:
    resolved = resolve(("old settings", {"kv_k": "q8_0", "kv_v": "q8_0", "flash_attention": "off"}))
    assert resolved.config.flash_attention is FlashAttention.ON
    (note,) = resolved.notes
    assert "kv_v" in note and "flash_attention" in note


def test_c04_quantised_keys_alone_need_nothing() -> None:
    resolved = resolve(("request", {"kv_k": "q8_0", "flash_attention": "off"}))
    assert resolved.config.flash_attention is FlashAttention.OFF
    assert resolved.notes == []


def test_what_llama_cpp_would_abort_on_is_repaired() -> None:
    resolved = resolve(("request", {"batch": 64, "micro_batch": 512, "slots": 100}))
    assert (resolved.config.micro_batch, resolved.config.slots) == (64, 64)
    assert len(resolved.notes) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"context": 1},
        {"slots": 0},
        {"slots": 257},
        {"threads": 0},
        {"kv_k": "q2_k"},
        {"no_such": 1},
        {"context": "many"},
        {"rope_scale": float("nan")},
        {"rope_base": -1.0},
        {"tensor_split": [0, 0]},
        {"tensor_split": [float("inf")]},
        {"ttl_s": 0},
    ],
)
def test_what_cannot_work_is_refused_by_name(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        resolve(("request", fields))
    assert next(iter(fields)) in str(caught.value)


def test_what_is_refused_is_what_was_said_and_the_choices_are_named() -> None:
    with pytest.raises(InvalidConfig, match="slots is 100000"):
        resolve(("request", {"slots": 100_000}))
    for name in ("kv_k", "load_mode", "flash_attention"):
        with pytest.raises(InvalidConfig) as caught:
            resolve(("request", {name: "banana"}))
        assert "banana" in caught.value.message and CHOICES[name][0] in caught.value.hint


@given(st.fixed_dictionaries({}, optional={name: st.integers(-5, 1 << 20) for name in BOUNDS}))
def test_every_config_is_refused_or_within_what_llama_cpp_takes(fields: dict[str, object]) -> None:
    try:
        config = resolve(("request", fields)).config
    except InvalidConfig:
        return
    assert config.micro_batch <= config.batch
    assert config.slots <= config.batch
    assert isinstance(config, LoadConfig)
