"""Renders with one template helper on one event loop."""

import asyncio
from collections.abc import Mapping, Sequence

from octavo.core.prompts.jobs import Json
from octavo.core.prompts.messages import Message, Segment
from octavo.core.prompts.template import Templates

CONTROL = [
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|im_start|>",
    "<|im_end|>",
    "[INST]",
    "[/INST]",
]


class Rendering:
    """Renders with one helper, each call to its end."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.templates = runner.run(_started())

    def segments(
        self,
        template: str,
        messages: Sequence[Message],
        *,
        control_tokens: Sequence[str] = CONTROL,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Json]] | None = None,
        extra: Mapping[str, Json] | None = None,
        bos: str = "<bos>",
    ) -> list[Segment]:
        """Render a conversation."""
        return self.runner.run(
            self.templates.render(
                template,
                messages,
                bos=bos,
                eos="<eos>",
                control_tokens=control_tokens,
                add_generation_prompt=add_generation_prompt,
                tools=tools,
                extra=extra,
            )
        )

    def text(
        self, template: str, messages: Sequence[Message], *, extra: Mapping[str, Json] | None = None
    ) -> str:
        """Render a conversation and join the segments."""
        return "".join(segment.text for segment in self.segments(template, messages, extra=extra))


async def _started() -> Templates:
    templates = Templates()
    await templates.start()
    return templates
