"""Where conversations are kept; no method keeps the event loop waiting, SQLite runs in other threads."""

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from octavo.core.chats.database import Database
from octavo.core.chats.types import (
    Chat,
    ChatMessage,
    ChatRole,
    ChatSummary,
    MessageState,
    MessageStats,
)
from octavo.core.errors import ChatNotFound, Conflict, ErrorReport, InvalidRequest

P = ParamSpec("P")
T = TypeVar("T")

_UPDATABLE = ("title", "model", "system_prompt", "sampling")

# what an answer is kept with whose service ended without a word
_BROKEN_OFF = ErrorReport(
    "service_unavailable",
    "The service ended while this was written.",
    hint="The text so far is kept. Try again for a whole answer.",
    details={"ended_while": "writing"},
)

_SUMMARIES = """
SELECT chats.*, (SELECT id FROM messages WHERE chat_id = chats.id AND state = 'writing' LIMIT 1) AS reply
FROM chats
"""

# the turns from the shown branch's end back to its beginning
_BRANCH = """
WITH RECURSIVE branch AS (
    SELECT * FROM messages WHERE id = (SELECT leaf FROM chats WHERE id = ?)
    UNION
    SELECT messages.* FROM messages JOIN branch ON messages.id = branch.parent_id
)
SELECT * FROM branch ORDER BY position
"""


class Turn(msgspec.Struct, frozen=True):
    """What ``begin_reply`` made: the person's turn, if there is a new one, and the answer to be written."""

    user: ChatMessage | None
    reply: ChatMessage


class ChatStore:
    """The conversations of one ``OCTAVO_HOME``; the service is the only writer.

    ``set_aside`` names the file that a damaged database was moved to. Methods raise ``ChatNotFound`` and
    ``StorageFailed``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.set_aside = database.set_aside

    @classmethod
    def open(cls, path: Path) -> "ChatStore":
        """Open or make the database (blocks); answers that a killed service left behind become failed."""
        database = Database(path)
        with database.writing() as connection:
            connection.execute(
                "UPDATE messages SET state = 'failed', error = ? WHERE state = 'writing'",
                (_json(_BROKEN_OFF),),
            )
        return cls(database)

    async def close(self) -> None:
        """Write everything out and close the file."""
        await asyncio.to_thread(self._database.close)

    async def create_chat(
        self,
        *,
        title: str = "",
        model: str | None = None,
        system_prompt: str = "",
        sampling: Mapping[str, float | int] | None = None,
    ) -> Chat:
        """Make an empty conversation."""
        fields = {
            "title": title,
            "model": model,
            "system_prompt": system_prompt,
            "sampling": dict(sampling or {}),
        }
        return await self._write(_create_chat, fields)

    async def chats(self) -> list[ChatSummary]:
        """List the conversations, the last used first."""
        return await self._read(_summaries)

    async def chat(self, chat_id: str) -> Chat:
        """Give a conversation with the turns of its shown branch."""
        return await self._read(_chat, chat_id)

    async def update_chat(self, chat_id: str, **fields: Any) -> Chat:
        """Change ``title``, ``model``, ``system_prompt`` or ``sampling``; what is None stays as it is."""
        unknown = [name for name in fields if name not in _UPDATABLE]
        if unknown:
            raise InvalidRequest(f"A chat has no {', '.join(unknown)}.")
        return await self._write(_update_chat, chat_id, fields)

    async def delete_chat(self, chat_id: str) -> None:
        """Delete a conversation with all its branches."""
        await self._write(_delete_chat, chat_id)

    async def add_message(
        self,
        chat_id: str,
        role: ChatRole,
        content: str,
        *,
        model: str | None = None,
        state: MessageState = "done",
    ) -> ChatMessage:
        """Put a turn at the end of the shown branch."""
        return await self._write(_append, chat_id, _new_message(role, content, model, state))

    async def begin_reply(self, chat_id: str, content: str | None, *, model: str, title: str = "") -> Turn:
        """Add a person's turn and an empty answer in state ``writing``, or only the answer.

        Without ``content`` the last answer is written anew: the old one leaves the shown branch but stays in
        the database. ``title`` counts where the chat has none. Raises ``Conflict`` while another answer is
        being written.
        """
        return await self._write(_begin_reply, chat_id, content, model, title)

    async def save_text(self, message_id: str, text: str) -> None:
        """Keep what an answer says so far."""
        await self._write(_save_text, message_id, text)

    async def finish_message(self, message: ChatMessage) -> None:
        """Keep an answer as it ended: text, model, stats, error and state."""
        await self._write(_finish, message)

    async def message(self, message_id: str) -> tuple[str, ChatMessage]:
        """Give the conversation's id and the turn."""
        return await self._read(_message_in_chat, message_id)

    async def _read(self, work: Callable[..., T], *args: Any) -> T:
        def run() -> T:
            with self._database.reading() as connection:
                return work(connection, *args)

        return await asyncio.to_thread(run)

    async def _write(self, work: Callable[..., T], *args: Any) -> T:
        def run() -> T:
            with self._database.writing() as connection:
                return work(connection, *args)

        # a caller that is cancelled doesn't undo what is being written
        return await asyncio.shield(asyncio.to_thread(run))


def _create_chat(connection: sqlite3.Connection, fields: Mapping[str, Any]) -> Chat:
    chat_id, now = _new_id(), time.time()
    connection.execute("INSERT INTO chats (id, created, updated) VALUES (?, ?, ?)", (chat_id, now, now))
    return _update_chat(connection, chat_id, fields)


def _summaries(connection: sqlite3.Connection) -> list[ChatSummary]:
    rows = connection.execute(f"{_SUMMARIES} ORDER BY updated DESC, rowid DESC")
    return [msgspec.convert(dict(row), ChatSummary) for row in rows]


def _chat(connection: sqlite3.Connection, chat_id: str) -> Chat:
    row = _chat_row(connection, chat_id)
    messages = [_message(found) for found in connection.execute(_BRANCH, (chat_id,))]
    fields = dict(row) | {"sampling": msgspec.json.decode(row["sampling"]), "messages": messages}
    return msgspec.convert(fields, Chat)


def _chat_row(connection: sqlite3.Connection, chat_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(f"{_SUMMARIES} WHERE id = ?", (chat_id,)).fetchone()
    if row is None:
        raise ChatNotFound("There is no such chat.", chat=chat_id)
    return row


def _update_chat(connection: sqlite3.Connection, chat_id: str, fields: Mapping[str, Any]) -> Chat:
    _chat_row(connection, chat_id)
    for name, value in fields.items():
        if value is not None:
            stored = msgspec.json.encode(value).decode() if name == "sampling" else _storable(value)
            connection.execute(f"UPDATE chats SET {name} = ? WHERE id = ?", (stored, chat_id))
    _touch(connection, chat_id)
    return _chat(connection, chat_id)


def _delete_chat(connection: sqlite3.Connection, chat_id: str) -> None:
    _chat_row(connection, chat_id)
    connection.execute("DELETE FROM chats WHERE id = ?", (chat_id,))


def _begin_reply(
    connection: sqlite3.Connection, chat_id: str, content: str | None, model: str, title: str
) -> Turn:
    chat = _chat(connection, chat_id)
    if chat.reply is not None:
        raise Conflict("This chat is still being answered.", hint="Stop the answer first.", reply=chat.reply)
    user = None
    if content is not None:
        user = _append(connection, chat_id, _new_message("user", content, None, "done"))
    elif not any(message.role == "user" for message in chat.messages):
        raise InvalidRequest("There is nothing to answer in this chat yet.")
    elif chat.messages[-1].role == "assistant":
        _step_back(connection, chat_id)
    changes = {"model": model} | ({"title": title} if title and not chat.title else {})
    _update_chat(connection, chat_id, changes)
    return Turn(user, _append(connection, chat_id, _new_message("assistant", "", model, "writing")))


def _step_back(connection: sqlite3.Connection, chat_id: str) -> None:
    parent = "SELECT parent_id FROM messages WHERE id = chats.leaf"
    connection.execute(f"UPDATE chats SET leaf = ({parent}) WHERE id = ?", (chat_id,))


def _append(connection: sqlite3.Connection, chat_id: str, message: ChatMessage) -> ChatMessage:
    leaf = _chat_row(connection, chat_id)["leaf"]
    position = "1 + coalesce((SELECT position FROM messages WHERE id = :leaf), 0)"
    connection.execute(
        f"""
        INSERT INTO messages (id, chat_id, parent_id, position, role, content, model, state, created)
        VALUES (:id, :chat, :leaf, {position}, :role, :content, :model, :state, :created)
        """,
        msgspec.structs.asdict(message) | {"chat": chat_id, "leaf": leaf},
    )
    connection.execute("UPDATE chats SET leaf = ? WHERE id = ?", (message.id, chat_id))
    _touch(connection, chat_id)
    return message


def _save_text(connection: sqlite3.Connection, message_id: str, text: str) -> None:
    done = connection.execute("UPDATE messages SET content = ? WHERE id = ?", (_storable(text), message_id))
    _expect_one(done, message_id)


def _finish(connection: sqlite3.Connection, message: ChatMessage) -> None:
    done = connection.execute(
        "UPDATE messages SET content = ?, model = ?, stats = ?, error = ?, state = ? WHERE id = ?",
        (
            _storable(message.content),
            message.model,
            _json(message.stats),
            _json(message.error),
            message.state,
            message.id,
        ),
    )
    _expect_one(done, message.id)
    connection.execute(
        "UPDATE chats SET updated = ? WHERE id = (SELECT chat_id FROM messages WHERE id = ?)",
        (time.time(), message.id),
    )


def _expect_one(done: sqlite3.Cursor, message_id: str) -> None:
    if done.rowcount == 0:
        raise ChatNotFound("There is no such message.", message_id=message_id)


def _message_in_chat(connection: sqlite3.Connection, message_id: str) -> tuple[str, ChatMessage]:
    row = connection.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is None:
        raise ChatNotFound("There is no such reply.", reply=message_id)
    return row["chat_id"], _message(row)


def _touch(connection: sqlite3.Connection, chat_id: str) -> None:
    connection.execute("UPDATE chats SET updated = ? WHERE id = ?", (time.time(), chat_id))


def _message(row: sqlite3.Row) -> ChatMessage:
    return ChatMessage(
        id=row["id"],
        role=row["role"],
        content=row["content"],
        created=row["created"],
        model=row["model"],
        stats=msgspec.json.decode(row["stats"], type=MessageStats) if row["stats"] else None,
        error=msgspec.json.decode(row["error"], type=ErrorReport) if row["error"] else None,
        state=row["state"],
    )


def _new_message(role: ChatRole, content: str, model: str | None, state: MessageState) -> ChatMessage:
    return ChatMessage(
        id=_new_id(), role=role, content=_storable(content), created=time.time(), model=model, state=state
    )


def _new_id() -> str:
    return uuid.uuid4().hex


def _json(value: MessageStats | ErrorReport | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _storable(text: str) -> str:
    # half of a surrogate pair, which no file can hold, becomes a question mark
    return text.encode("utf-8", "replace").decode("utf-8")
