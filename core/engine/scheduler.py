"""Continuous batching: running streams and the prefills of new ones share each batch.

A step is: admit waiting requests to idle slots; put one token of every running stream into the batch, then
prompt tokens up to a cap that keeps the streams flowing; decode; sample where a sequence is complete; report.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.meter import Meter
from octavo.core.engine.pace import Pace
from octavo.core.engine.prefix import PrefixCache
from octavo.core.engine.protocol import (
    AnyReport,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Generate,
    Prefilled,
    SlotIdle,
    Started,
    Text,
)
from octavo.core.engine.shares import Share
from octavo.core.engine.slots import Slot, Work
from octavo.core.engine.text import StopStrings
from octavo.core.errors import ContextLengthExceeded, DecodeFailed, InvalidRequest, OctavoError
from octavo.core.memory.figures import KvFigures, SlotFigures

if TYPE_CHECKING:  # tests drive the scheduler without llama.cpp
    from octavo.core.engine.llama import Batch, Context, Sampler, Vocabulary

# llama.h, llama_decode
DONE, NO_ROOM, ABORTED = 0, 1, 2

# ggml-cpu/common.h, GGML_FA_TILE_Q: from so many rows on, attention is computed in tiles and rounds otherwise
ATTENTION_TILE = 64


MakeSampler = Callable[[Work], "Sampler"]
Emit = Callable[[AnyReport], None]


class Scheduler:
    """Serves many requests with one context; used by one thread, except ``cancel_prefill``."""

    def __init__(
        self,
        context: "Context",
        batch: "Batch",
        words: "Vocabulary",
        config: LoadConfig,
        make_sampler: MakeSampler,
        emit: Emit,
        meter: Meter,
        *,
        whole_states: bool = False,
    ) -> None:
        self._context = context
        self._batch = batch
        self._words = words
        self._config = config
        self._make_sampler = make_sampler
        self._emit = emit
        self._meter = meter
        self.slots = [Slot(index) for index in range(config.slots)]
        self._prefixes = PrefixCache(self.slots, context, whole_states=whole_states)
        self._pace = Pace()
        self.waiting: deque[Work] = deque()
        self.in_prefill: frozenset[str] = frozenset()
        self._began_at = time.monotonic()
        self.tokens_total = 0
        self.prompt_tokens_total = 0

    @property
    def has_work(self) -> bool:
        """Something is running or waiting."""
        return bool(self.waiting) or any(not slot.is_idle for slot in self.slots)

    def submit(self, request: Generate, prompt: list[int]) -> None:
        """Queue a request; one that can never run fails at once, with the reason."""
        ends, stops = self._endings(request)
        fault = self._fault(prompt)
        if fault is not None:
            self._emit(Failed(request.request, fault.report()))
            return
        room = self._context.usable - len(prompt)
        limit = room if request.max_tokens is None else min(request.max_tokens, room)
        work = Work(request, prompt, limit, time.monotonic(), ends=ends, stops=StopStrings(stops))
        try:
            work.sampler = self._make_sampler(work)
        except OctavoError as error:
            self._emit(Failed(request.request, error.report()))
            return
        self.waiting.append(work)

    def cancel(self, request: str) -> None:
        """End a request wherever it is; its slot is idle at once, its cells stay for reuse."""
        for work in self.waiting:
            if work.request.request == request:
                self.waiting.remove(work)
                self._finish(work, "cancelled")
                return
        for slot in self.slots:
            if slot.work is not None and slot.work.request.request == request:
                self._end(slot, "cancelled")
                return

    def step(self) -> None:
        """Run one batch."""
        self._admit()
        shares = self._plan(self._cap())
        if not shares:
            return
        self.in_prefill = frozenset(
            share.slot.work.request.request
            for share in shares
            if share.slot.work and share.slot.is_prefilling
        )
        started = time.monotonic()
        self._meter.begin()
        result = self._run(shares)
        self._charge(shares)
        self._pace.note(sum(share.rows for share in shares), time.monotonic() - started)
        self.in_prefill = frozenset()
        if result == DONE:
            self._advance(shares)
        elif result == ABORTED:
            self._rewind(shares)
        elif result == NO_ROOM:
            self._preempt(shares)
        else:
            self._fail(shares, result)

    def figures(self, kv_bytes: int, committed_bytes: int) -> Figures:
        """Count what is used now; the two sizes are the KV cache's."""
        kv = KvFigures(
            used_cells=self._context.used_cells,
            size_cells=self._context.cells,
            size_bytes=kv_bytes,
            committed_bytes=committed_bytes,
            slots=[self._slot_figures(slot) for slot in self.slots],
        )
        return Figures(
            kv=kv,
            active=sum(not slot.is_idle for slot in self.slots),
            queued=len(self.waiting),
            tokens_total=self.tokens_total,
            prompt_tokens_total=self.prompt_tokens_total,
            disk_bytes_total=self._meter.disk_bytes_total,
            major_faults_total=self._meter.major_faults_total,
        )

    def _slot_figures(self, slot: Slot) -> SlotFigures:
        idle_s = time.monotonic() - (slot.used_at or self._began_at) if slot.is_idle else None
        return SlotFigures(
            slot=slot.index,
            cells=len(slot.held),
            shared_cells=self._context.shared_cells(slot.index),
            idle_s=idle_s,
        )

    # ---- admission

    def _endings(self, request: Generate) -> tuple[frozenset[int], list[str]]:
        """Tell tokens from stop strings among what ends this request."""
        if request.ignore_end:
            return frozenset(), request.stop
        tokens = {text: self._words.tokenize(text, special=True) for text in request.ends}
        single = frozenset(ids[0] for ids in tokens.values() if len(ids) == 1)
        return single, [*request.stop, *(text for text, ids in tokens.items() if len(ids) != 1)]

    def _fault(self, prompt: Sequence[int]) -> OctavoError | None:
        if not prompt:
            return InvalidRequest("The prompt is empty.", hint="Send at least one character.", param="prompt")
        if not all(0 <= token < self._words.size for token in prompt):
            return InvalidRequest(
                f"The prompt holds token ids outside 0 to {self._words.size - 1}.", param="prompt"
            )
        if len(prompt) >= self._context.usable:
            return ContextLengthExceeded(
                f"The prompt has {len(prompt)} tokens, the context holds {self._context.usable}.",
                hint="Shorten the prompt or load the model with a larger context.",
                n_prompt_tokens=len(prompt),
                n_ctx=self._context.usable,
            )
        return None

    def _admit(self) -> None:
        while self.waiting:
            work = self.waiting[0]
            if work.is_seeded and all(slot.is_idle for slot in self.slots):
                self._prefixes.forget_all()
            if not self._has_room_for(work):
                return
            slot = self._prefixes.place(work.tokens)
            if slot is None:
                return
            self.waiting.popleft()
            self._start(slot, work)

    def _has_room_for(self, work: Work) -> bool:
        """One that was pushed back for want of cells comes again only when all its tokens surely fit."""
        active = [len(slot.work) for slot in self.slots if slot.work is not None]
        return not work.admitted_at or not active or sum(active) + len(work) < self._context.cells

    def _start(self, slot: Slot, work: Work) -> None:
        slot.work = work
        if work.admitted_at:  # it was pushed back and goes on where it was
            return
        work.admitted_at = time.monotonic()
        work.cached = len(slot.held)
        self._emit(
            Started(
                work.request.request,
                slot.index,
                len(work.prompt),
                work.cached,
                work.admitted_at - work.received_at,
                work.seed,
            )
        )

    # ---- one batch

    def _cap(self) -> int:
        """The most tokens of this step: the whole batch, or fewer while streams are running."""
        if any(slot.is_decoding for slot in self.slots):
            return min(self._pace.cap(self._config.mixed_step, len(self.slots)), self._context.batch_limit)
        return self._context.batch_limit

    def _plan(self, cap: int) -> list[Share]:
        """Share out ``cap`` tokens: one to each running stream, the rest to prefills in order of arrival.

        A part that is below an attention tile stays below it in company too, so that a short prompt is read
        with the same rounding, and answered with the same tokens, as if it were alone.
        """
        shares = [Share(slot, len(slot.held), len(slot.held) + 1) for slot in self.slots if slot.is_decoding]
        rows = len(shares)
        for slot in sorted((slot for slot in self.slots if slot.is_prefilling), key=_arrival):
            count = min(slot.missing, cap - rows)
            if count < ATTENTION_TILE:
                count = min(count, ATTENTION_TILE - 1 - rows)
            if count <= 0:
                break
            shares.append(Share(slot, len(slot.held), len(slot.held) + count))
            rows += count
        return shares

    def _run(self, shares: list[Share]) -> int:
        """Decode; when there is no room, give back idle slots, then halve the prefills' part."""
        result = self._decode(shares)
        while result == NO_ROOM:
            if not self._prefixes.free_oldest() and not self._halve(shares):
                return NO_ROOM
            result = self._decode(shares)
        return result

    def _charge(self, shares: list[Share]) -> None:
        spent, rows = self._meter.end(), sum(share.rows for share in shares)
        for share in shares:
            work = share.slot.work
            assert work is not None
            work.cost.add(spent, share.rows, rows, is_prefill=not work.made)

    def _decode(self, shares: list[Share]) -> int:
        self._batch.clear()
        for share in shares:
            work = share.slot.work
            assert work is not None
            is_complete = share.stop == len(work)
            last = self._batch.add(
                work.span(share.start, share.stop), share.start, share.slot.index, wants_logits=is_complete
            )
            share.output = last if is_complete else -1
        return self._context.decode(self._batch)

    def _halve(self, shares: list[Share]) -> bool:
        """Make the longest part half as long; False when all parts are one token."""
        longest = max(shares, key=lambda share: share.rows)
        length = longest.rows
        if length == 1:
            return False
        longest.stop = longest.start + length // 2
        return True

    def _advance(self, shares: list[Share]) -> None:
        for share in shares:
            slot, work = share.slot, share.slot.work
            assert work is not None
            slot.held.extend(work.span(share.start, share.stop))
            if not work.made:
                self.prompt_tokens_total += share.rows
                self._emit(Prefilled(work.request.request, share.stop, len(work.prompt)))
        for share in shares:
            if share.output >= 0:
                self._sample(share.slot, share.output)

    def _rewind(self, shares: list[Share]) -> None:
        """After an abort: no part counts, each slot is as it was before the step."""
        for share in shares:
            self._prefixes.cut(share.slot, share.start)

    def _preempt(self, shares: list[Share]) -> None:
        """No room even for one token each: the youngest request is pushed back; alone, it ends."""
        self._rewind(shares)
        active = sorted((slot for slot in self.slots if not slot.is_idle), key=_arrival)
        youngest = active[-1]
        if len(active) == 1:
            self._end(youngest, "length")
            return
        assert youngest.work is not None
        self.waiting.appendleft(youngest.work)
        youngest.work = None
        self._prefixes.forget(youngest)

    def _fail(self, shares: list[Share], result: int) -> None:
        error = DecodeFailed(
            f"llama.cpp could not decode a batch (result {result}).",
            hint="Send the request again.",
            result=result,
        )
        for share in shares:
            work = share.slot.work
            assert work is not None
            share.slot.work = None
            self._prefixes.forget(share.slot)
            self._free(work)
            self._emit(Failed(work.request.request, error.report()))
            self._emit(SlotIdle(share.slot.index, work.request.request))

    # ---- tokens

    def _sample(self, slot: Slot, output: int) -> None:
        work = slot.work
        assert work is not None and work.sampler is not None
        token = work.sampler.sample(self._context, output)
        work.note_token(time.monotonic())
        self.tokens_total += 1
        if not work.request.ignore_end and (token in work.ends or self._words.is_end(token)):
            self._end(slot, "stop")
            return
        work.made.append(token)
        self._speak(work, token)
        if work.stops.met is not None:
            self._end(slot, "stop")
        elif len(work.made) >= work.limit:
            self._end(slot, "length")

    def _speak(self, work: Work, token: int) -> None:
        text = work.stops.feed(work.characters.feed(self._words.piece(token)))
        work.unsent.append(token)
        if text:
            self._emit(Text(work.request.request, text, work.unsent))
            work.unsent = []

    def _end(self, slot: Slot, reason: FinishReason) -> None:
        work = slot.work
        assert work is not None
        slot.work = None
        slot.used_at = time.monotonic()
        self._finish(work, reason)
        self._emit(SlotIdle(slot.index, work.request.request))

    def _finish(self, work: Work, reason: FinishReason) -> None:
        if work.stops.met is None:
            rest = work.stops.end()
            if rest or work.unsent:
                self._emit(Text(work.request.request, rest, work.unsent))
        self._free(work)
        self._emit(
            Finished(
                work.request.request,
                reason,
                len(work.prompt),
                work.cached,
                len(work.made),
                work.timings(),
                work.stops.met,
            )
        )

    def _free(self, work: Work) -> None:
        if work.sampler is not None:
            work.sampler.free()
            work.sampler = None


def _arrival(slot: Slot) -> float:
    return slot.work.received_at if slot.work else 0.0
