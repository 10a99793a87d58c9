import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from octavo.core.chats.database import migrations
from octavo.core.chats.store import ChatStore
from octavo.core.chats.types import Chat, MessageStats
from octavo.core.errors import ChatNotFound, Conflict, InvalidRequest, StorageFailed

T = TypeVar("T")

# the layout that was released never changes: a change is a new file with the next number
FIRST_SCHEMA = "d66ab2e5166dde5d6599dd060ae59cf001bd0f7943f6173187480e5f69349e6e"


class Opened:
    """A store whose calls run to their end."""

    def __init__(self, path: Path, runner: asyncio.Runner) -> None:
        self.path = path
        self.store = ChatStore.open(path)
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await one call."""
        return self._runner.run(work)

    def reopen(self) -> None:
        """Close the file and open it again, as a restarted service does."""
        self.run(self.store.close())
        self.store = ChatStore.open(self.path)

    def chat(self, *turns: str, **fields: Any) -> Chat:
        """Make a chat whose turns alternate."""
        chat = self.run(self.store.create_chat(**fields))
        for index, text in enumerate(turns):
            self.run(self.store.add_message(chat.id, "assistant" if index % 2 else "user", text))
        return self.run(self.store.chat(chat.id))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with asyncio.Runner() as runner:
        opened = Opened(tmp_path / "octavo.db", runner)
        yield opened
        opened.run(opened.store.close())


def contents(chat: Chat) -> list[str]:
    return [message.content for message in chat.messages]


def damaged(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*"))


def test_first_schema_is_frozen() -> None:
    assert hashlib.sha256(migrations()[0].encode()).hexdigest() == FIRST_SCHEMA


def test_chat_is_kept_with_all_it_has(opened: Opened) -> None:
    made = opened.chat(
        "안녕하세요, 문장을 써 주세요.",
        "네\x00 😀",
        title="한국어",
        model="m",
        system_prompt="짧게",
        sampling={"temperature": 0.5, "top_k": 3},
    )
    opened.reopen()
    kept = opened.run(opened.store.chat(made.id))
    assert kept == made
    assert contents(kept) == ["안녕하세요, 문장을 써 주세요.", "네\x00 😀"]
    assert kept.sampling == {"temperature": 0.5, "top_k": 3}


def test_half_a_surrogate_pair_is_kept_as_a_question_mark(opened: Opened) -> None:
    assert contents(opened.chat("a\ud800b")) == ["a?b"]


def test_chats_are_listed_last_used_first(opened: Opened) -> None:
    first, second = opened.chat("one"), opened.chat("two")
    opened.run(opened.store.add_message(first.id, "assistant", "answer"))
    assert [summary.id for summary in opened.run(opened.store.chats())] == [first.id, second.id]


def test_update_changes_only_what_is_named(opened: Opened) -> None:
    made = opened.chat("hi", title="old", model="m")
    changed = opened.run(opened.store.update_chat(made.id, title="new", model=None, sampling={"min_p": 0.1}))
    assert (changed.title, changed.model, changed.sampling) == ("new", "m", {"min_p": 0.1})
    with pytest.raises(InvalidRequest):
        opened.run(opened.store.update_chat(made.id, leaf="x"))


def test_delete_takes_the_messages_too(opened: Opened) -> None:
    made = opened.chat("hi", "there")
    opened.run(opened.store.delete_chat(made.id))
    with pytest.raises(ChatNotFound):
        opened.run(opened.store.chat(made.id))
    with pytest.raises(ChatNotFound):
        opened.run(opened.store.message(made.messages[0].id))


def test_unknown_ids_are_typed_errors(opened: Opened) -> None:
    store = opened.store
    for work in (
        store.chat("x"),
        store.update_chat("x", title="t"),
        store.delete_chat("x"),
        store.message("x"),
    ):
        with pytest.raises(ChatNotFound):
            opened.run(work)
    with pytest.raises(ChatNotFound):
        opened.run(store.add_message("x", "user", "hi"))
    with pytest.raises(ChatNotFound):
        opened.run(store.save_text("x", "hi"))


def test_begin_reply_adds_both_turns_and_a_title(opened: Opened) -> None:
    made = opened.chat()
    turn = opened.run(opened.store.begin_reply(made.id, "hi", model="m", title="hi"))
    chat = opened.run(opened.store.chat(made.id))
    assert (chat.title, chat.model, chat.reply) == ("hi", "m", turn.reply.id)
    assert contents(chat) == ["hi", ""]
    assert opened.run(opened.store.chats())[0].reply == turn.reply.id
    with pytest.raises(Conflict):
        opened.run(opened.store.begin_reply(made.id, "again", model="m"))


def test_new_answer_replaces_the_last_one_which_stays_in_the_database(opened: Opened) -> None:
    made = opened.chat("hi", "first", title="kept")
    turn = opened.run(opened.store.begin_reply(made.id, None, model="m", title="other"))
    chat = opened.run(opened.store.chat(made.id))
    assert (contents(chat), chat.title, turn.user) == (["hi", ""], "kept", None)
    assert opened.run(opened.store.message(made.messages[1].id))[1].content == "first"


def test_unanswered_turn_gets_an_answer(opened: Opened) -> None:
    made = opened.chat("hi")
    opened.run(opened.store.begin_reply(made.id, None, model="m"))
    assert contents(opened.run(opened.store.chat(made.id))) == ["hi", ""]
    with pytest.raises(InvalidRequest):
        opened.run(opened.store.begin_reply(opened.chat().id, None, model="m"))


def test_answer_of_a_killed_service_is_failed_and_keeps_its_text(opened: Opened) -> None:
    made = opened.chat()
    turn = opened.run(opened.store.begin_reply(made.id, "hi", model="m"))
    opened.run(opened.store.save_text(turn.reply.id, "half an ans"))
    opened.reopen()
    chat = opened.run(opened.store.chat(made.id))
    left = chat.messages[1]
    assert (chat.reply, left.state, left.content) == (None, "failed", "half an ans")
    assert left.error is not None
    assert (left.error.code, left.error.details) == ("service_unavailable", {"ended_while": "writing"})
    assert left.error.message == "The service ended while this was written."


def test_answer_that_was_stopped_stays_cancelled(opened: Opened) -> None:
    made = opened.chat()
    turn = opened.run(opened.store.begin_reply(made.id, "hi", model="m"))
    opened.run(opened.store.finish_message(msgspec.structs.replace(turn.reply, state="cancelled")))
    opened.reopen()
    kept = opened.run(opened.store.chat(made.id)).messages[1]
    assert (kept.state, kept.error) == ("cancelled", None)


def test_finished_message_keeps_its_figures(opened: Opened) -> None:
    made = opened.chat()
    turn = opened.run(opened.store.begin_reply(made.id, "hi", model="m"))
    error = StorageFailed("Full.", path="p").report()
    stats = MessageStats(prompt_tokens=3, tokens_per_s=1.5, stop_reason="stop")
    ended = type(turn.reply)(
        id=turn.reply.id,
        role="assistant",
        content="text",
        created=turn.reply.created,
        model="n",
        stats=stats,
        error=error,
        state="failed",
    )
    opened.run(opened.store.finish_message(ended))
    assert opened.run(opened.store.message(turn.reply.id)) == (made.id, ended)


def test_many_callers_at_once_see_whole_chats(opened: Opened) -> None:
    made = opened.chat()

    async def crowd() -> list[Chat]:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for index in range(20):
                group.create_task(opened.store.add_message(made.id, "user", f"turn {index}"))
            reads = [group.create_task(opened.store.chat(made.id)) for _ in range(20)]
        return [read.result() for read in reads]

    for chat in opened.run(crowd()):
        assert len(set(contents(chat))) == len(chat.messages)
    assert len(opened.run(opened.store.chat(made.id)).messages) == 20


def test_another_connection_reads_while_the_store_writes(opened: Opened) -> None:
    made = opened.chat("hi")
    reader = sqlite3.connect(f"file:{opened.path}?mode=ro", uri=True)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    opened.run(opened.store.add_message(made.id, "assistant", "there"))
    assert reader.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    reader.close()


@pytest.mark.parametrize("spoiled", [b"no database at all" * 100, b""], ids=["garbage", "empty"])
def test_file_that_is_no_database_does_no_harm(tmp_path: Path, spoiled: bytes) -> None:
    path = tmp_path / "octavo.db"
    path.write_bytes(spoiled)
    store = ChatStore.open(path)
    assert damaged(path) == ([store.set_aside] if store.set_aside else [])
    assert (store.set_aside is None) == (spoiled == b"")
    if store.set_aside:
        assert store.set_aside.read_bytes() == spoiled
    assert asyncio.run(store.chats()) == []
    asyncio.run(store.close())


def test_damaged_pages_are_set_aside_not_deleted(opened: Opened) -> None:
    opened.chat(*(f"turn {index} " * 200 for index in range(40)))
    opened.run(opened.store.close())
    body = bytearray(opened.path.read_bytes())
    body[4096:] = b"\xa5" * (len(body) - 4096)
    opened.path.write_bytes(body)
    opened.store = ChatStore.open(opened.path)
    assert opened.store.set_aside is not None
    assert opened.store.set_aside.read_bytes() == bytes(body)
    assert contents(opened.chat("new")) == ["new"]


def test_database_of_a_newer_octavo_is_left_alone(opened: Opened) -> None:
    opened.run(opened.store.close())
    newer = sqlite3.connect(opened.path)
    with newer:
        newer.execute("UPDATE schema_versions SET version = 99")
    newer.close()
    with pytest.raises(StorageFailed, match="newer Octavo"):
        ChatStore.open(opened.path)
    assert damaged(opened.path) == []
    newer = sqlite3.connect(opened.path)
    with newer:
        newer.execute("UPDATE schema_versions SET version = 1")
    newer.close()
    opened.store = ChatStore.open(opened.path)


def test_full_disk_is_a_typed_error_and_loses_nothing(opened: Opened) -> None:
    made = opened.chat("hi")
    with opened.store._database.reading() as connection:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StorageFailed):
        opened.run(opened.store.add_message(made.id, "assistant", "x" * 100_000))
    assert contents(opened.run(opened.store.chat(made.id))) == ["hi"]


def test_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed):
        ChatStore.open(tmp_path / "file" / "octavo.db")


WRITER = """
import asyncio, sys
from pathlib import Path
from octavo.core.chats.store import ChatStore

async def main():
    store = ChatStore.open(Path(sys.argv[1]))
    chat = await store.create_chat()
    turn = await store.begin_reply(chat.id, "hi", model="m")
    for length in range(1, 100_000):
        await store.save_text(turn.reply.id, "ab" * length)
        print(length, flush=True)

asyncio.run(main())
"""


def test_killed_writer_leaves_a_sound_database(tmp_path: Path) -> None:
    path = tmp_path / "octavo.db"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    with writer:
        assert writer.stdout is not None
        saved = [int(writer.stdout.readline()) for _ in range(50)]
        os.kill(writer.pid, signal.SIGKILL)
    store = ChatStore.open(path)
    assert store.set_aside is None
    chat = asyncio.run(store.chat(asyncio.run(store.chats())[0].id))
    assert len(chat.messages[1].content) >= 2 * saved[-1]
    assert chat.messages[1].state == "failed"
    asyncio.run(store.close())
