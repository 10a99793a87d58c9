"""``/v1/chat/completions`` and ``/v1/completions``: shapes, limits, streams."""

import asyncio
import json
from pathlib import Path

from octavo.core.errors import ContextLengthExceeded, ModelNotFound, QueueFull, WorkerCrashed
from tests.fakes import MODEL, Script, loading
from tests.server.support import events, in_loop, joined, served, until


@in_loop
async def test_plain_answer_has_usage_and_all_keys(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.cached_tokens = 4
        answer = (await at.chat()).json()
        again = (await at.chat()).json()
    assert answer["object"] == "chat.completion" and answer["model"] == MODEL
    assert isinstance(answer["created"], int) and answer["id"] != again["id"]
    choice = answer["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "Hello"}
    assert choice["finish_reason"] == "stop" and choice["index"] == 0
    assert answer["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


@in_loop
async def test_a02_usage_comes_last_and_only_when_asked(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        asked = events((await at.chat(stream=True, stream_options={"include_usage": True})).content)
        plain = events((await at.chat(stream=True)).content)
    assert asked[-1] == plain[-1] == "[DONE]"
    assert asked[-2]["choices"] == [] and asked[-2]["usage"]["total_tokens"] == 12
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in asked[:-2])
    assert all("usage" not in chunk and chunk["choices"] for chunk in plain[:-1])
    assert len({chunk["id"] for chunk in asked[:-1]}) == 1


@in_loop
async def test_stream_begins_with_role_and_ends_with_reason(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.reason = "length"
        response = await at.chat(stream=True)
    chunks = events(response.content)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert joined(chunks) == "Hello"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, None, "length"]
    assert {chunk["object"] for chunk in chunks[:-1]} == {"chat.completion.chunk"}


@in_loop
async def test_completion_plain_and_streamed_say_the_same(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        plain = (await at.complete()).json()
        chunks = events((await at.complete(stream=True)).content)
    assert plain["object"] == "text_completion" and plain["choices"][0]["text"] == "Hello" == joined(chunks)
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


@in_loop
async def test_a02_caps_reach_the_runtime(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for fields in (
            {"max_completion_tokens": 4},
            {"max_tokens": None, "max_completion_tokens": 2},
            {"max_tokens": 1},
        ):
            assert (await at.chat(**fields)).status_code == 200
        assert (await at.chat(max_tokens=-1)).status_code == 200
        refused = await at.chat(max_tokens=0)
        assert [request.max_tokens for request in at.runtime.requests] == [4, 2, 1, None]
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "max_tokens"


@in_loop
async def test_a05_every_form_of_stop_is_understood(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for stop in (None, "", [], [""], "a", ["a", "", "b"]):
            assert (await at.complete(stop=stop)).status_code == 200
        assert [request.stop for request in at.runtime.requests] == [[], [], [], [], ["a"], ["a", "b"]]


@in_loop
async def test_a07_parts_roles_and_null_content_are_understood(octavo_home: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    history = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "function", "name": "get_time", "content": "12:00"},
    ]
    async with served(octavo_home) as at:
        assert (await at.chat(messages=history)).status_code == 200
        image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
        refused = await at.chat(messages=image)
        messages = at.runtime.requests[0].messages  # type: ignore[union-attr]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[1].content == "a\nb" and messages[2].content is None
    assert messages[2].tool_calls[0].name == "get_time"
    assert refused.status_code == 400 and "text" in refused.json()["error"]["message"]


@in_loop
async def test_sampling_fields_reach_the_runtime(octavo_home: Path) -> None:
    said = {
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 7,
        "min_p": 0.1,
        "seed": 2**32 + 5,
        "logit_bias": {"12": -100},
    }
    async with served(octavo_home) as at:
        await at.chat(**said, frequency_penalty=1, presence_penalty=None)
        sampling = at.runtime.requests[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0, 0.5, 7, 0.1)
    assert sampling.seed == 5 and sampling.logit_bias == {12: -100} and sampling.frequency_penalty == 1


@in_loop
async def test_what_cannot_be_served_yet_is_refused_by_name(octavo_home: Path) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    async with served(octavo_home) as at:
        for name, value in {
            "n": 2,
            "tools": [tool],
            "response_format": {"type": "json_object"},
            "logprobs": True,
        }.items():
            error = (await at.chat(**{name: value})).json()["error"]
            assert error["param"] == name and name.split("_")[0] in error["message"]
        ignored = await at.chat(tools=[], n=1, response_format={"type": "text"}, store=False, user="u", x={})
    assert ignored.status_code == 200


@in_loop
async def test_a13_refusals_have_a_status_streamed_or_not(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = [
            ContextLengthExceeded("9000 tokens don't fit 2048.", n_prompt_tokens=9000, n_ctx=2048)
        ]
        at.runtime.refusal = at.runtime.script[0]  # type: ignore[assignment]
        for is_streamed in (False, True):
            response = await at.chat(stream=is_streamed)
            error = response.json()["error"]
            assert response.status_code == 400
            assert error["code"] == "context_length_exceeded" and error["type"] == "exceed_context_size_error"
            assert (error["n_prompt_tokens"], error["n_ctx"]) == (9000, 2048)
            assert "9000" in error["message"] and "2048" in error["message"]
        at.runtime.refusal = QueueFull("Full.", retry_after_s=1.5)
        busy = await at.chat(stream=True)
        at.runtime.refusal = ModelNotFound("No model x.", hint="Did you mean y?", candidates=["y"])
        unknown = await at.chat()
    assert busy.status_code == 503 and busy.headers["retry-after"] == "2"
    assert unknown.status_code == 404 and unknown.json()["error"]["candidates"] == ["y"]
    assert "Did you mean y?" in unknown.json()["error"]["message"]


@in_loop
async def test_c08_a_crash_in_a_stream_is_its_last_event(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = ["Hel", WorkerCrashed("The worker got signal 9.")]
        chunks = events((await at.chat(stream=True)).content)
        plain = await at.chat()
        at.runtime.script = [RuntimeError("a fault of ours")]
        broken = events((await at.chat(stream=True)).content)
    assert joined(chunks[:-1]) == "Hel" and chunks[-1]["error"]["code"] == "worker_crashed"
    assert plain.status_code == 502 and plain.json()["error"]["code"] == "worker_crashed"
    assert broken[-1]["error"]["code"] == "internal_error" and "fault of ours" not in str(broken)


@in_loop
async def test_load_progress_is_told_in_comments(octavo_home: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("octavo.server.openai.answers.HEADER_PATIENCE_S", 0.05)
    async with served(octavo_home) as at:

        async def steps(request: object):  # type: ignore[no-untyped-def]
            yield loading(0.5)
            await asyncio.sleep(0.2)
            async for step in at.runtime._steps():
                yield step

        at.runtime.chat = steps  # type: ignore[method-assign]
        body = (await at.chat(stream=True)).content
    assert body.startswith(b": loading 50%\n\n") and joined(events(body)) == "Hello"


@in_loop
async def test_silence_is_filled_with_comments(octavo_home: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("octavo.server.sse.EventStream.__init__.__defaults__", (0.05,))
    async with served(octavo_home) as at:
        at.runtime.script = ["a", 0.3, "b"]
        body = (await at.chat(stream=True)).content
    assert body.count(b": keep-alive\n\n") >= 3 and joined(events(body)) == "ab"


@in_loop
async def test_a14_a_client_that_leaves_cancels_its_request(octavo_home: Path) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "hi"}]}
    async with served(octavo_home) as at:
        cases: list[tuple[bool, Script]] = [(True, ["a", 30.0]), (True, [30.0]), (False, ["a", 30.0])]
        for is_streamed, script in cases:
            at.runtime.script = script
            before = at.runtime.cancelled
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            content = json.dumps({**body, "stream": is_streamed}).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            writer.write(f"{head}{len(content)}\r\n\r\n".encode() + content)
            await until(lambda: at.runtime.active == 1)
            if is_streamed and script[0] == "a":
                await reader.readuntil(b'"content":"a"')
            writer.close()
            await until(lambda count=before: at.runtime.cancelled == count + 1, 1.0)  # type: ignore[misc]
            await until(lambda: at.runtime.active == 0, 1.0)


@in_loop
async def test_ids_are_not_guessable(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        ids = {(await at.complete()).json()["id"] for _ in range(5)}
    assert len(ids) == 5 and all(len(each) > 20 for each in ids)
