"""Chat templates of our own, for models whose file carries none."""

from collections.abc import Sequence
from typing import Literal

import msgspec

# No template here writes BOS: the tokeniser puts it in front where the vocabulary wants one.

GEMMA = """\
{% set head = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}
{% for message in (messages[1:] if messages[0].role == 'system' else messages) %}
{% if message.role != ('assistant' if loop.index0 % 2 else 'user') %}
{{- raise_exception('Turns of user and assistant must alternate') }}
{% endif %}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else 'user') + '\\n' -}}
{{- head if loop.first }}{{ message.content | trim }}{{ '<end_of_turn>\\n' -}}
{% endfor %}
{% if add_generation_prompt %}
{{- '<start_of_turn>model\\n' -}}
{% endif %}
"""

CHATML = """\
{% for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{% endfor %}
{% if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' -}}
{% endif %}
"""

LLAMA3 = """\
{% for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}
{{- message.content | trim }}{{ '<|eot_id|>' -}}
{% endfor %}
{% if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
{% endif %}
"""

MISTRAL = """\
{% set head = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}
{% for message in (messages[1:] if messages[0].role == 'system' else messages) %}
{% if message.role != ('assistant' if loop.index0 % 2 else 'user') %}
{{- raise_exception('Turns of user and assistant must alternate') }}
{% elif message.role == 'user' %}
{{- '[INST] ' + (head if loop.first else '') + message.content + '[/INST]' -}}
{% else %}
{{- ' ' + message.content + eos_token -}}
{% endif %}
{% endfor %}
"""

PHI3 = """\
{% for message in messages %}
{{- '<|' + message.role + '|>\\n' + message.content + '<|end|>\\n' -}}
{% endfor %}
{% if add_generation_prompt %}
{{- '<|assistant|>\\n' -}}
{% endif %}
"""


class Format(msgspec.Struct, frozen=True):
    """A built-in template: the control tokens it needs, and what ends a turn in it."""

    text: str
    needs: tuple[str, ...]
    end_of_turn: tuple[str, ...]


FORMATS = {
    "gemma": Format(GEMMA, ("<start_of_turn>", "<end_of_turn>"), ("<end_of_turn>",)),
    "llama3": Format(LLAMA3, ("<|start_header_id|>", "<|eot_id|>"), ("<|eot_id|>",)),
    "chatml": Format(CHATML, ("<|im_start|>", "<|im_end|>"), ("<|im_end|>",)),
    "mistral": Format(MISTRAL, ("[INST]", "[/INST]"), ("</s>",)),
    "phi3": Format(PHI3, ("<|user|>", "<|assistant|>", "<|end|>"), ("<|end|>",)),
}
FALLBACK = "chatml"

_ARCHITECTURES = {"gemma": "gemma", "mistral": "mistral", "phi3": "phi3", "qwen": "chatml"}

_TURN_ENDS = (
    "<end_of_turn>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",  # noqa: RUF001
    "</s>",
)


class Choice(msgspec.Struct, frozen=True):
    """The template to use, where it is from, and the texts that end the model's turn.

    The runtime hands ``end_of_turn`` to the engine: as tokens where the vocabulary has them, else as stop
    strings.
    """

    name: str
    source: Literal["model", "built-in"]
    text: str
    end_of_turn: list[str]


def choose(architecture: str, control_tokens: Sequence[str], template: str | None) -> Choice:
    """Take the model's own template where it has one, else the built-in one that fits its vocabulary."""
    known = frozenset(control_tokens)
    if template and template.strip():
        return Choice("model", "model", template, _ends_in(template, known))
    name = _fitting(architecture, known)
    return Choice(name, "built-in", FORMATS[name].text, list(FORMATS[name].end_of_turn))


def built_in(name: str) -> Choice:
    """Give a built-in template by its name; raises ``KeyError``."""
    return Choice(name, "built-in", FORMATS[name].text, list(FORMATS[name].end_of_turn))


def _fitting(architecture: str, known: frozenset[str]) -> str:
    family = next(
        (name for start, name in _ARCHITECTURES.items() if architecture.startswith(start)), FALLBACK
    )
    fits = (name for name in (family, *FORMATS) if known.issuperset(FORMATS[name].needs))
    return next(fits, FALLBACK)


def _ends_in(template: str, known: frozenset[str]) -> list[str]:
    # in the Harmony format <|end|> only ends a part of the answer
    parts = {"<|end|>"} if "<|return|>" in known else set()
    return [end for end in _TURN_ENDS if end in known and end in template and end not in parts]
