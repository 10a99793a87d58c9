"""What a model was made to do beside plain text, judged from its chat template and from a projector's header.

A template is read as text, not run: it *takes tools* when a tag of it uses the variable ``tools``, it
*reasons* when it speaks of thinking in one of the known ways, it *has a place for images* when it writes an
image's mark. The last alone means little (Gemma 3's small text models have the template of their larger
siblings), so a model sees images only with a projector at its side.
"""

import re
from dataclasses import dataclass

from octavo.core.gguf.header import Header

_TOOLS = re.compile(r"\{[%{](?:(?![%}]\}).)*?\b(?:tools|builtin_tools|custom_tools)\b", re.DOTALL)
_REASONING = re.compile(
    r"</?think(?:ing)?>|\[/?THINK\]|<seed:think>|enable_thinking|reasoning_(?:content|effort|budget)"
    r"|thinking_budget|<\|channel\|>analysis|message\.thinking|<\|?think_?(?:start|begin)",
)
_IMAGES = re.compile(
    r"<start_of_image>|<\|vision_start\|>|<\|image(?:_pad|_start)?\|?>|<image>|\[IMG\]|image_url|['\"]image['\"]"
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """``vision`` of a model: its template has a place for images; of a projector: it reads images."""

    tools: bool = False
    reasoning: bool = False
    vision: bool = False
    audio: bool = False


@dataclass(frozen=True, slots=True)
class Projector:
    """What a projector (mmproj) says of itself; ``output_length`` is the model's embedding length."""

    type: str | None
    output_length: int | None


def capabilities(header: Header, templates: list[str]) -> Capabilities:
    """Judge a model by its chat templates, a projector by its header."""
    if header.kind == "projector":
        return Capabilities(vision=_has(header, "vision"), audio=_has(header, "audio"))
    return Capabilities(
        tools=any(_TOOLS.search(text) for text in templates),
        reasoning=any(_REASONING.search(text) for text in templates),
        vision=any(_IMAGES.search(text) for text in templates),
    )


def projector(header: Header) -> Projector | None:
    """Describe a projector; None for anything else. The keys are those of ``tools/mtmd/clip-impl.h``."""
    if header.kind != "projector":
        return None
    kinds = ("vision", "audio")
    lengths = (header.integer(f"clip.{kind}.projection_dim") for kind in kinds)
    types = (
        header.text(key) for key in ("clip.projector_type", *(f"clip.{k}.projector_type" for k in kinds))
    )
    return Projector(next(filter(None, types), None), next(filter(None, lengths), None))


def _has(header: Header, kind: str) -> bool:
    return header.metadata.get(f"clip.has_{kind}_encoder") is True
