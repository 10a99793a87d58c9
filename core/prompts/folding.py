"""Reshape a conversation for templates that are stricter than the conversation is.

Many templates take one system message, or none, know no tool turns, and raise unless user and assistant
alternate.
"""

import re
from collections.abc import Iterator, Sequence

from octavo.core.prompts.messages import Message, ToolCall

_WORDS = re.compile(r"\w+")

# enough of a message to recognise it by
_SAMPLE = 4_000


def variants(messages: Sequence[Message], *, knows_calls: bool) -> Iterator[list[Message]]:
    """Give the conversation as it is, then folded more and more; what is the same twice comes once.

    ``knows_calls`` False: the template has no word for tool calls, so they are text from the start.
    """
    given = list(messages) if knows_calls else [_with_written_calls(message) for message in messages]
    shapes = [given]
    for keeps_system, keeps_tools in ((True, True), (True, False), (False, True), (False, False)):
        shapes.append(fold(given, keeps_system=keeps_system, keeps_tools=keeps_tools))
    for index, shape in enumerate(shapes):
        if shape not in shapes[:index]:
            yield shape


def fold(messages: Sequence[Message], *, keeps_system: bool, keeps_tools: bool) -> list[Message]:
    """Give alternating turns: a late system message becomes the user's at its place, neighbours merge.

    Without ``keeps_system`` the first system message goes into the first user turn as well; without
    ``keeps_tools`` calls are written out as text and results become the user's. A conversation that the
    assistant opens gets an empty user turn in front. No content stays None.
    """
    turns = list(messages) if keeps_tools else [_without_tools(message) for message in messages]
    head = _leading_system(turns)
    opening = turns[:head] if keeps_system else []
    rest = [_user(turn) if turn.role == "system" else turn for turn in turns[len(opening) :]]
    merged = _merged([_with_content(turn) for turn in (*opening, *rest)])
    start = _leading_system(merged)
    if len(merged) > start and merged[start].role == "assistant":
        merged.insert(start, Message("user", ""))
    return merged


def split_prefill(messages: Sequence[Message]) -> tuple[list[Message], str | None]:
    """Take off an assistant's last message: the beginning of the answer, which the model continues."""
    if messages and messages[-1].role == "assistant" and not messages[-1].tool_calls:
        return list(messages[:-1]), messages[-1].content or ""
    return list(messages), None


def loses_text(contents: Sequence[str], rendered: str) -> bool:
    """Tell whether a message's text is missing from the prompt: judged by its longest word."""
    return any(_longest_word(content) not in rendered for content in contents)


def _longest_word(text: str) -> str:
    return max(_WORDS.findall(text[:_SAMPLE]), key=len, default="")


def _leading_system(messages: Sequence[Message]) -> int:
    others = (index for index, message in enumerate(messages) if message.role != "system")
    return next(others, len(messages))


def _merged(messages: Sequence[Message]) -> list[Message]:
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role == message.role != "tool":
            message = _together(result.pop(), message)
        result.append(message)
    return result


def _together(first: Message, second: Message) -> Message:
    text = "\n\n".join(part for part in (first.content, second.content) if part)
    return Message(first.role, text, tool_calls=[*first.tool_calls, *second.tool_calls])


def _user(message: Message) -> Message:
    return Message("user", message.content)


def _with_content(message: Message) -> Message:
    if message.content is not None:
        return message
    return Message(message.role, "", message.tool_calls, message.tool_call_id, message.name)


def _without_tools(message: Message) -> Message:
    return _user(message) if message.role == "tool" else _with_written_calls(message)


def _with_written_calls(message: Message) -> Message:
    if not message.tool_calls:
        return message
    calls = [_written(call) for call in message.tool_calls]
    return Message(message.role, "\n".join(part for part in (message.content, *calls) if part))


def _written(call: ToolCall) -> str:
    return f'{{"name": "{call.name}", "arguments": {call.arguments or "{}"}}}'
