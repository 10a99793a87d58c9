"""Answers requests with a model that is loaded, or being loaded: prompt, worker, and what it cost."""

import contextlib
from collections.abc import AsyncGenerator

from octavo.core.config.settings import SettingsFile
from octavo.core.engine.protocol import Finished, Generate, Started
from octavo.core.errors import QueueFull
from octavo.core.prompts.messages import Message, Segment
from octavo.core.prompts.template import Templates
from octavo.core.runtime.attribution import Stopwatch
from octavo.core.runtime.instance import Instance, Visit
from octavo.core.runtime.requests import ChatRequest, CompletionRequest, Serving, Step


class Answers:
    """Turns requests into answers, each by one instance; belongs to the runtime's event loop."""

    def __init__(self, settings: SettingsFile, templates: Templates) -> None:
        self._settings = settings
        self._templates = templates

    async def answer(
        self, instance: Instance, request: ChatRequest | CompletionRequest, watch: Stopwatch
    ) -> AsyncGenerator[Step, None]:
        """Answer with this instance once it is loaded; closing the generator cancels the request.

        ``watch`` runs since the request arrived. Raises ``QueueFull``.
        """
        visit = self._admit(instance)
        try:
            async with contextlib.aclosing(instance.wait_loaded()) as shares:
                async for loading in shares:
                    yield loading
            watch.note_loaded()
            engine, ready = instance.engine, instance.ready
            assert engine is not None and ready is not None
            yield Serving(instance.name, instance.model.id, ready.context)
            command = await self._command(instance, request)
            async with contextlib.aclosing(engine.generate(command)) as reports:
                async for report in reports:
                    watch.note(report)
                    if isinstance(report, Started):
                        visit.note_started()
                    elif isinstance(report, Finished):
                        report = _accounted(instance, watch, report)
                    yield report
        finally:
            visit.leave()

    def _admit(self, instance: Instance) -> Visit:
        limit = self._settings.current.server.queue_limit
        if instance.queued >= limit:
            raise QueueFull(
                f"{limit} requests already wait for {instance.name}.", hint="Try again.", retry_after_s=2
            )
        return Visit(instance)

    async def _command(self, instance: Instance, request: ChatRequest | CompletionRequest) -> Generate:
        assert instance.engine is not None
        prompt: list[Segment] = []
        ends: list[str] = []
        tokens: list[int] | None = None
        if isinstance(request, ChatRequest):
            prompt = await self._render(instance, request.messages)
            ends = instance.template.end_of_turn if instance.template else []
        elif isinstance(request.prompt, str):
            prompt = [Segment(request.prompt, True)]
        else:
            tokens = request.prompt
        return Generate(
            instance.engine.next_request(),
            prompt,
            tokens=tokens,
            sampling=request.sampling,
            max_tokens=request.max_tokens,
            stop=request.stop,
            ends=ends,
            client=request.client,
            ignore_end=request.ignore_end,
        )

    async def _render(self, instance: Instance, messages: list[Message]) -> list[Segment]:
        assert instance.template is not None and instance.ready is not None
        return await self._templates.render(
            instance.template.text,
            messages,
            bos=instance.ready.bos,
            eos=instance.ready.eos,
            control_tokens=instance.ready.control_tokens,
        )


def _accounted(instance: Instance, watch: Stopwatch, report: Finished) -> Finished:
    """Keep where the request's time went; give its end with the time of the load."""
    attribution = watch.attribution(report)
    if attribution is not None:
        instance.memory.requests.append(attribution)
    return watch.finished(report)
