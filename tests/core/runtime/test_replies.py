import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from octavo.core.chats.store import ChatStore
from octavo.core.chats.types import (
    Chat,
    ChatMessage,
    ReplyEnded,
    ReplyEvent,
    ReplyLoading,
    ReplyReading,
    ReplySnapshot,
    ReplyText,
)
from octavo.core.engine.protocol import Finished, Prefilled, Started, Text, Timings
from octavo.core.errors import ChatNotFound, Conflict, InvalidRequest, StorageFailed, WorkerCrashed
from octavo.core.events import AnyEvent, ChatChanged
from octavo.core.prompts.messages import Message
from octavo.core.runtime.replies import Replies, title_of
from octavo.core.runtime.requests import ChatRequest, Loading, Serving, Step

STARTED = Started("r", slot=0, prompt_tokens=7, cached_tokens=2, queue_s=0.1, seed=1)
TIMINGS = Timings(queue_s=0.1, prefill_s=0.2, first_token_s=0.3, decode_s=2.0)
FINISHED = Finished("r", "stop", prompt_tokens=7, cached_tokens=2, completion_tokens=4, timings=TIMINGS)


def text(words: str) -> Text:
    return Text("r", words, [1])


class FakeRuntime:
    """Answers with the steps that a test feeds it; None in the queue ends the answer."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.steps: asyncio.Queue[Step | Exception | None] = asyncio.Queue()
        self.was_closed = False

    def feed(self, *steps: Step | Exception | None) -> None:
        for step in steps:
            self.steps.put_nowait(step)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Step, None]:
        self.requests.append(request)
        try:
            while (step := await self.steps.get()) is not None:
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            self.was_closed = True


class World:
    """A store, a runtime that a test leads, and replies between them."""

    def __init__(self, path: Path, **intervals: float) -> None:
        self.store = ChatStore.open(path)
        self.runtime = FakeRuntime()
        self.published: list[AnyEvent] = []
        self.replies = Replies(self.runtime, self.store, self.published.append, **intervals)

    async def chat(self, **fields: Any) -> Chat:
        return await self.store.create_chat(**{"model": "m"} | fields)

    async def message(self, reply: str) -> ChatMessage:
        return (await self.store.message(reply))[1]

    async def all_events(self, reply: str) -> list[ReplyEvent]:
        return [event async for event in self.replies.follow(reply)]


def play(tmp_path: Path, scene: Callable[[World], Awaitable[None]], **intervals: float) -> None:
    async def run() -> None:
        world = World(tmp_path / "octavo.db", **intervals)
        async with asyncio.timeout(30):
            await scene(world)
            await world.replies.close()
            await world.store.close()

    asyncio.run(run())


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():
        await asyncio.sleep(0.005)


def test_reply_is_followed_to_its_end_and_kept(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat(system_prompt="Be brief.", sampling={"temperature": 0, "max_tokens": 9})
        begun = await world.replies.start(chat.id, "Say hello in one word, please, to all of the world.")
        assert (await world.store.chat(chat.id)).reply == begun.reply
        world.runtime.feed(Serving("m", "org/m", 2048), STARTED, text("Hel"), text("lo"), FINISHED, None)
        snapshot, *rest = await world.all_events(begun.reply)
        assert snapshot == ReplySnapshot(
            reply=begun.reply, chat=chat.id, message=begun.message, text="", state="writing"
        )
        ended = rest.pop()
        assert "".join(event.text for event in rest if isinstance(event, ReplyText)) == "Hello"
        assert isinstance(ended, ReplyEnded)
        kept = await world.store.chat(chat.id)
        assert kept.messages[1] == ended.message == await world.message(begun.reply)
        assert (kept.reply, kept.title) == (None, "Say hello in one word, please, to all of…")
        assert world.published == [ChatChanged(chat=chat.id)] * 2

    play(tmp_path, scene)


def test_request_carries_history_and_settings(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat(system_prompt="Be brief.", sampling={"temperature": 0, "max_tokens": 9})
        await world.store.add_message(chat.id, "user", "one")
        await world.store.add_message(chat.id, "assistant", "two")
        begun = await world.replies.start(chat.id, "three", model="other")
        world.runtime.feed(FINISHED, None)
        await world.all_events(begun.reply)
        [request] = world.runtime.requests
        assert request.messages == [
            Message("system", "Be brief."),
            Message("user", "one"),
            Message("assistant", "two"),
            Message("user", "three"),
        ]
        assert (request.model, request.max_tokens, request.sampling.temperature) == ("other", 9, 0)
        assert (await world.store.chat(chat.id)).model == "other"

    play(tmp_path, scene)


def test_figures_are_kept(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(
            Loading("m", 0.5), Serving("m", "org/m", 2048), STARTED, text("Hi"), FINISHED, None
        )
        await world.all_events(begun.reply)
        message = await world.message(begun.reply)
        assert message.model == "org/m"
        stats = message.stats
        assert stats is not None
        assert (stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens) == (7, 2, 4)
        assert (stats.tokens_per_s, stats.first_token_s, stats.prefill_s) == (2.0, 0.3, 0.2)
        assert (stats.stop_reason, message.state) == ("stop", "done")
        assert stats.load_s > 0

    play(tmp_path, scene)


def test_events_are_coalesced(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(STARTED)
        following = asyncio.create_task(world.all_events(begun.reply))
        await asyncio.sleep(0)
        began = time.monotonic()
        for _ in range(200):
            world.runtime.feed(text("word "))
            await asyncio.sleep(0.001)
        world.runtime.feed(FINISHED, None)
        events = [event for event in await following if isinstance(event, ReplyText)]
        took = time.monotonic() - began
        assert "".join(event.text for event in events) == "word " * 200
        assert events[-1].tokens == 200
        # one of them may come at once, and the last one does not wait
        assert len(events) <= 30 * took + 2

    play(tmp_path, scene)


def test_first_text_does_not_wait(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        events = world.replies.follow(begun.reply)
        assert isinstance(await anext(events), ReplySnapshot)
        world.runtime.feed(text("Hi"))
        async with asyncio.timeout(1):
            assert await anext(events) == ReplyText(text="Hi", tokens=1)
        await events.aclose()

    play(tmp_path, scene, events_per_s=0.01)


def test_progress_is_told_until_text_comes(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        events = world.replies.follow(begun.reply)
        await anext(events)
        for step, expected in (
            (Loading("m", 0.25), ReplyLoading(share=0.25)),
            (Prefilled("r", 3, 7), ReplyReading(done=3, total=7)),
        ):
            world.runtime.feed(step)
            assert await anext(events) == expected
        late = world.replies.follow(begun.reply)
        assert isinstance(await anext(late), ReplySnapshot)
        assert await anext(late) == ReplyReading(done=3, total=7)
        await late.aclose()
        await events.aclose()

    play(tmp_path, scene)


def test_follower_may_leave_and_come_back(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        events = world.replies.follow(begun.reply)
        await anext(events)
        world.runtime.feed(STARTED, text("one "))
        assert await anext(events) == ReplyText(text="one ", tokens=1)
        await events.aclose()
        world.runtime.feed(text("two "))
        await until(lambda: _has_text(world, begun.reply, "one two "))
        again = asyncio.create_task(world.all_events(begun.reply))
        await asyncio.sleep(0)
        world.runtime.feed(text("three"), FINISHED, None)
        snapshot, *deltas, ended = await again
        assert isinstance(snapshot, ReplySnapshot)
        assert snapshot.text + "".join(event.text for event in deltas if isinstance(event, ReplyText)) == (
            "one two three"
        )
        assert isinstance(ended, ReplyEnded)

    play(tmp_path, scene, save_every_s=0.01)


async def _has_text(world: World, reply: str, content: str) -> bool:
    return (await world.message(reply)).content == content


def test_finished_reply_answers_from_the_store(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(text("Hi"), FINISHED, None)
        await world.all_events(begun.reply)
        snapshot, ended = await world.all_events(begun.reply)
        assert isinstance(snapshot, ReplySnapshot)
        assert (snapshot.text, snapshot.state) == ("Hi", "done")
        assert ended == ReplyEnded(message=await world.message(begun.reply))
        with pytest.raises(ChatNotFound):
            await world.all_events("unknown")

    play(tmp_path, scene)


def test_reply_goes_on_and_is_saved_with_nobody_following(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(STARTED, text("half"))
        await until(lambda: _has_text(world, begun.reply, "half"))
        assert (await world.message(begun.reply)).state == "writing"
        world.runtime.feed(text(" whole"), FINISHED, None)
        await until(lambda: _has_text(world, begun.reply, "half whole"))

    play(tmp_path, scene, save_every_s=0.02)


def test_stop_keeps_the_text_and_closes_the_request(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        events = world.replies.follow(begun.reply)
        await anext(events)
        world.runtime.feed(STARTED, text("half"))
        await anext(events)
        await world.replies.stop(begun.reply)
        assert world.runtime.was_closed
        message = await world.message(begun.reply)
        assert (message.state, message.content, message.error) == ("cancelled", "half", None)
        assert message.stats is not None
        assert (message.stats.stop_reason, message.stats.completion_tokens) == ("cancelled", 1)
        assert await anext(events) == ReplyEnded(message=message)
        await world.replies.stop(begun.reply)
        assert await world.message(begun.reply) == message
        await events.aclose()

    play(tmp_path, scene)


def test_crash_fails_the_reply_and_keeps_its_text(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat()
        begun = await world.replies.start(chat.id, "hi")
        crash = WorkerCrashed("The worker died.", signal="SIGKILL")
        world.runtime.feed(STARTED, text("half"), crash)
        *_, ended = await world.all_events(begun.reply)
        assert isinstance(ended, ReplyEnded)
        assert (ended.message.state, ended.message.content) == ("failed", "half")
        assert ended.message.error == crash.report()
        again = await world.replies.start(chat.id)
        assert (await world.store.chat(chat.id)).messages[-1].id == again.message

    play(tmp_path, scene)


@pytest.mark.parametrize("end", [None, RuntimeError("a fault of ours")])
def test_answer_that_breaks_off_is_a_failure(tmp_path: Path, end: Exception | None) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(text("half"), end)
        *_, ended = await world.all_events(begun.reply)
        assert isinstance(ended, ReplyEnded)
        assert ended.message.state == "failed"
        assert ended.message.error is not None

    play(tmp_path, scene)


def test_regenerated_answer_replaces_the_last_one(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat()
        await world.store.add_message(chat.id, "user", "hi")
        await world.store.add_message(chat.id, "assistant", "old")
        begun = await world.replies.start(chat.id)
        assert begun.user_message is None
        world.runtime.feed(text("new"), FINISHED, None)
        await world.all_events(begun.reply)
        assert [turn.content for turn in (await world.store.chat(chat.id)).messages] == ["hi", "new"]
        assert world.runtime.requests[0].messages == [Message("user", "hi")]

    play(tmp_path, scene)


def test_requests_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat()
        with pytest.raises(InvalidRequest):
            await world.replies.start(chat.id, "  ")
        with pytest.raises(InvalidRequest):
            await world.replies.start(chat.id)
        with pytest.raises(InvalidRequest, match="Choose a model"):
            await world.replies.start((await world.chat(model=None)).id, "hi")
        with pytest.raises(ChatNotFound):
            await world.replies.start("unknown", "hi")
        with pytest.raises(ChatNotFound):
            await world.replies.stop("unknown")
        await world.replies.start(chat.id, "hi")
        with pytest.raises(Conflict):
            await world.replies.start(chat.id, "hi again")

    play(tmp_path, scene)


def test_caller_that_goes_away_leaves_a_reply_that_is_written(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat()
        starting = asyncio.create_task(world.replies.start(chat.id, "hi"))
        await asyncio.sleep(0)
        starting.cancel()
        world.runtime.feed(text("Hi"), FINISHED, None)
        await until(lambda: _is_answered(world, chat.id))

    play(tmp_path, scene)


async def _is_answered(world: World, chat_id: str) -> bool:
    chat = await world.store.chat(chat_id)
    return bool(chat.messages) and chat.messages[-1].state == "done"


def test_deleting_a_chat_ends_its_reply(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        chat = await world.chat()
        await world.replies.start(chat.id, "hi")
        await world.replies.stop_chat(chat.id)
        await world.store.delete_chat(chat.id)
        assert await world.store.chats() == []

    play(tmp_path, scene)


def test_full_disk_fails_the_reply_but_its_follower_has_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")

        async def full(*_: object) -> None:
            raise StorageFailed("The disk is full.")

        monkeypatch.setattr(world.store, "save_text", full)
        monkeypatch.setattr(world.store, "finish_message", full)
        world.runtime.feed(text("Hi"), FINISHED, None)
        *_, ended = await world.all_events(begun.reply)
        assert isinstance(ended, ReplyEnded)
        assert (ended.message.state, ended.message.content) == ("failed", "Hi")
        assert ended.message.error is not None
        assert ended.message.error.code == "storage_failed"

    play(tmp_path, scene, save_every_s=0.01)


def test_close_keeps_what_is_being_written(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        begun = await world.replies.start((await world.chat()).id, "hi")
        world.runtime.feed(STARTED, text("half"))
        events = world.replies.follow(begun.reply)
        await anext(events)
        await anext(events)
        await events.aclose()
        await world.replies.close()
        assert (await world.message(begun.reply)).content == "half"
        assert (await world.message(begun.reply)).state == "cancelled"

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("  Hello\n there ", "Hello there"),
        ("a" * 60, "a" * 40 + "…"),
        ("word " * 20, "word word word word word word word word…"),
        (
            "한국어 문장을 아주 길게 써서 제목이 어디에서 끊기는지 살펴보는 시험입니다",
            "한국어 문장을 아주 길게 써서 제목이 어디에서 끊기는지 살펴보는…",
        ),
    ],
)
def test_title_is_the_first_words(content: str, title: str) -> None:
    assert title_of(content) == title
