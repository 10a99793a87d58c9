"""Translate bodies into the runtime's requests; what can't be served yet is refused, never ignored."""

from octavo.core.engine.protocol import Sampling
from octavo.core.errors import InvalidRequest
from octavo.core.prompts.messages import Message, Role, ToolCall
from octavo.core.runtime.requests import ChatRequest, CompletionRequest
from octavo.server.openai.bodies import ChatBody, CommonBody, CompletionBody, ContentPart, MessageBody
from octavo.server.openai.names import Asker

# what llama.cpp counts tokens in
MOST_TOKENS = 2**31 - 1

_ROLES: dict[str, Role] = {"developer": "system", "function": "tool"}
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
)


def chat_request(body: ChatBody, model: str, asker: Asker) -> ChatRequest:
    """Make the runtime's request of a chat body; raises ``InvalidRequest`` naming the field."""
    _refuse(
        tools=bool(body.tools) and body.tool_choice != "none",
        response_format=body.response_format is not None and body.response_format.type != "text",
        logprobs=bool(body.logprobs),
    )
    limit = body.max_completion_tokens if body.max_tokens is None else body.max_tokens
    return ChatRequest(
        model=model,
        messages=[_message(turn, f"messages.{index}") for index, turn in enumerate(body.messages)],
        sampling=_sampling(body),
        max_tokens=_token_limit(limit),
        stop=_stop(body),
        ignore_end=bool(body.ignore_eos),
        client=asker.client,
        ttl_s=_ttl(body),
        allow_path=asker.allow_path,
    )


def completion_request(body: CompletionBody, model: str, asker: Asker) -> CompletionRequest:
    """Make the runtime's request of a completion body; raises ``InvalidRequest`` naming the field."""
    _refuse(
        echo=bool(body.echo),
        suffix=bool(body.suffix),
        best_of=(body.best_of or 1) > 1,
        logprobs=body.logprobs is not None,
    )
    return CompletionRequest(
        model=model,
        prompt=_prompt(body),
        sampling=_sampling(body),
        max_tokens=_token_limit(body.max_tokens),
        stop=_stop(body),
        ignore_end=bool(body.ignore_eos),
        client=asker.client,
        ttl_s=_ttl(body),
        allow_path=asker.allow_path,
    )


def wants_usage(body: CommonBody) -> bool:
    """Tell whether a stream is to end with a chunk of usage."""
    return body.stream_options is not None and bool(body.stream_options.include_usage)


def _refuse(**unserved: bool) -> None:
    for name, is_asked in unserved.items():
        if is_asked:
            raise InvalidRequest(f"{name} can't be served yet.", hint=f"Leave {name} out.", param=name)


def _message(turn: MessageBody, place: str) -> Message:
    calls = [ToolCall(call.id, call.function.name, call.function.arguments) for call in turn.tool_calls or []]
    role: Role = _ROLES.get(turn.role) or turn.role  # type: ignore[assignment]
    return Message(role, _text(turn.content, place), calls, turn.tool_call_id, turn.name)


def _text(content: str | list[ContentPart] | None, place: str) -> str | None:
    if not isinstance(content, list):
        return content
    return "\n".join(_part(part, f"{place}.content.{index}") for index, part in enumerate(content))


def _part(part: ContentPart, place: str) -> str:
    if part.type in ("text", "input_text", "output_text", "refusal"):
        return part.text or part.refusal or ""
    raise InvalidRequest(
        f"{place}: parts of type {part.type[:40]!r} can't be read: this model takes text only.",
        hint="Send text parts.",
        param=place,
    )


def _prompt(body: CompletionBody) -> str | list[int]:
    prompt = body.prompt
    if isinstance(prompt, str):
        return prompt
    if prompt and all(isinstance(token, int) for token in prompt):
        return _tokens(prompt)
    if len(prompt) == 1 and isinstance(prompt[0], str):
        return prompt[0]
    if len(prompt) == 1 and isinstance(prompt[0], list):
        return _tokens(list(prompt[0]))
    raise InvalidRequest(
        "prompt must be one text or one list of token ids; several at once can't be served yet.",
        param="prompt",
    )


def _tokens(prompt: list[str | int | list[int]] | list[int]) -> list[int]:
    tokens = [token for token in prompt if isinstance(token, int)]
    if not all(0 <= token < 2**31 for token in tokens):
        raise InvalidRequest("prompt holds a number that is no token id.", param="prompt")
    return tokens


def _sampling(body: CommonBody) -> Sampling:
    if (body.n or 1) != 1:
        raise InvalidRequest(
            f"n is {body.n}; a request gets one answer (n = 1).", hint="Send n requests.", param="n"
        )
    said = {name: value for name in _SAMPLING if (value := getattr(body, name)) is not None}
    return Sampling(**said, seed=_seed(body.seed))


def _seed(seed: int | None) -> int | None:
    # llama.cpp's seeds have 32 bits, OpenAI's 64; -1 means a new one, as everywhere in llama.cpp
    return None if seed is None or seed == -1 else seed & 0xFFFFFFFF


def _token_limit(limit: int | None) -> int | None:
    """Read a cap: none and -1 mean up to the end of the context."""
    if limit is None or limit == -1:
        return None
    if not 0 < limit <= MOST_TOKENS:
        raise InvalidRequest(
            f"max_tokens is {limit}; it must be from 1 to {MOST_TOKENS}.",
            hint="-1 means up to the end of the context.",
            param="max_tokens",
        )
    return limit


def _stop(body: CommonBody) -> list[str]:
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return [text for text in stop if text]


def _ttl(body: CommonBody) -> float | None:
    return body.ttl or None
