"""The ``openai`` client against ``octavo serve`` and a real model."""

import json
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.conftest import short_folder
from tests.e2e.serving import MODEL, environment, octavo, octavo_serve, programs

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello in one short sentence."}]


@pytest.fixture(scope="module")
def base(smollm2: Path) -> Iterator[str]:
    """Serve the model at a context of 2,048."""
    with short_folder() as home, programs(home):
        env = environment(home, smollm2)
        with octavo_serve(env) as (address, _process):
            loaded = octavo(env, "load", MODEL, "-c", "2048")
            assert loaded.returncode == 0, loaded.stderr
            yield address


@pytest.fixture
def client(base: str) -> Iterator[openai.OpenAI]:
    """A client that never retries, so that every refusal is seen."""
    with openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def test_models_are_listed(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.id.endswith(MODEL) and model.object == "model"
    assert model.context_length == 2048 and model.loaded  # type: ignore[attr-defined]
    assert client.models.retrieve(model.id).id == model.id


def test_a_plain_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=16, temperature=0)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length") and answer.model.endswith(MODEL)
    usage = answer.usage
    assert usage and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_a_streamed_answer_with_usage_is_the_plain_one(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=12, temperature=0)
    again = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=12, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=HI,
            max_tokens=12,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == again.choices[0].message.content and plain.choices[0].message.content
    usage = chunks[-1].usage
    assert usage and usage.completion_tokens == (again.usage and again.usage.completion_tokens)


def test_a_plain_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="1, 2, 3, 4,", max_tokens=8, temperature=0)
    assert answer.choices[0].text.strip().startswith("5") and answer.choices[0].finish_reason == "length"
    assert answer.usage and answer.usage.completion_tokens == 8


@pytest.mark.parametrize("stream", [False, True])
def test_a05_stop_strings_never_leak(client: openai.OpenAI, stream: bool) -> None:
    def ask(stop: str | list[str] | None, cap: int) -> tuple[str, str | None]:
        common = {"model": MODEL, "prompt": "1, 2, 3, 4,", "temperature": 0, "max_tokens": cap, "stop": stop}
        if not stream:
            choice = client.completions.create(**common).choices[0]  # type: ignore[call-overload]
            return choice.text, choice.finish_reason
        chunks = list(client.completions.create(**common, stream=True))  # type: ignore[call-overload]
        return "".join(chunk.choices[0].text for chunk in chunks), chunks[-1].choices[0].finish_reason

    free, reason = ask(None, 24)
    assert reason == "length" and "7, 8" in free
    assert ask(["7, 8"], 24) == (free.partition("7, 8")[0], "stop")
    short, _ = ask(None, 9)
    assert ask("7, 9", 9) == (short, "length")
    assert ask([], 4) == ask(None, 4)


def test_the_same_seed_gives_the_same_answer(client: openai.OpenAI) -> None:
    def ask(seed: int) -> str | None:
        answer = client.chat.completions.create(
            model=MODEL, messages=HI, max_tokens=24, temperature=1.5, seed=seed
        )
        return answer.choices[0].message.content

    ask(7)  # from here on the prompt is in the cache each time
    assert ask(7) == ask(7)
    assert len({ask(seed) for seed in range(5)}) > 1


def test_the_second_turn_finds_the_first_in_the_cache(client: openai.OpenAI) -> None:
    turns: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Name a colour of the rainbow."}]
    first = client.chat.completions.create(model=MODEL, messages=turns, max_tokens=12, temperature=0)
    turns += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "Name another."},
    ]
    second = client.chat.completions.create(model=MODEL, messages=turns, max_tokens=4, temperature=0)
    assert first.usage and second.usage and second.usage.prompt_tokens_details
    cached = second.usage.prompt_tokens_details.cached_tokens
    print(f"second turn: {cached} of {second.usage.prompt_tokens} prompt tokens were cached")
    assert cached and cached >= first.usage.prompt_tokens


def test_an_unknown_model_is_404_and_names_near_ones(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="SmolLM2-136M-Instrct", messages=HI)
    assert caught.value.code == "model_not_found" and MODEL in caught.value.message


def test_an_unknown_route_is_404(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.post("/nope", cast_to=object)
    assert "no route" in caught.value.message


def test_broken_json_is_400(client: openai.OpenAI, base: str) -> None:
    response = client._client.post(f"{base}/v1/chat/completions", content=b'{"messages":')
    assert response.status_code == 400 and json.loads(response.content)["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("stream", [False, True])
def test_a13_a_prompt_of_9000_tokens_is_400_with_both_numbers(client: openai.OpenAI, stream: bool) -> None:
    long: list[ChatCompletionMessageParam] = [{"role": "user", "content": "word " * 9000}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=long, stream=stream)
    body = caught.value.body
    assert isinstance(body, dict) and body["code"] == "context_length_exceeded"
    assert body["n_prompt_tokens"] >= 9000 and body["n_ctx"] == 2048
    assert str(body["n_prompt_tokens"]) in body["message"] and "2048" in body["message"]
    answer = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=1)
    assert answer.usage and answer.usage.completion_tokens == 1


def test_a13_an_answer_that_reaches_the_context_ends_with_length(client: openai.OpenAI, base: str) -> None:
    small = {"model": MODEL, "identifier": "small", "context_length": 512}
    loaded = client._client.post(f"{base}/api/v1/models/load", json=small)
    assert loaded.status_code == 200, loaded.text
    answer = client.completions.create(
        model="small", prompt=[100] * 504, max_tokens=100, temperature=0, extra_body={"ignore_eos": True}
    )
    client._client.post(f"{base}/api/v1/models/unload", json={"instance_id": "small"})
    assert answer.choices[0].finish_reason == "length" and answer.model == "small"
    assert answer.usage and answer.usage.prompt_tokens == 504 and 7 <= answer.usage.completion_tokens <= 9
