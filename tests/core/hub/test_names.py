"""Names of files and repositories: which may come near a disk of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidRequest
from octavo.core.hub.names import checked_repo, is_repo, safe_path
from octavo.core.hub.reference import Reference, is_reference, parse_reference
from tests.fixtures.hub_repositories import HOSTILE

MORE_HOSTILE = [
    "",
    ".",
    "..",
    "a//b.gguf",
    "a/./b.gguf",
    "a/../b.gguf",
    "\\\\server\\share\\x.gguf",
    "c:x.gguf",
    "x.gguf:stream",
    "con.gguf",
    "sub/NUL/x.gguf",
    "com1.gguf",
    "x.gguf ",
    "x.gguf.",
    " x.gguf",
    ".hidden.gguf",
    "new\nline.gguf",
    "tab\t.gguf",
    "right\u202eto-left.gguf",
    "a" * 250 + ".gguf",
    "\ud800.gguf",
    "/".join("abcdefghijklmn") + "/x.gguf",
    "what?.gguf",
    "pipe|.gguf",
]


@pytest.mark.parametrize("path", [*HOSTILE[1:], *MORE_HOSTILE])
def test_d07_a_hostile_path_is_none(path: str) -> None:
    assert safe_path(path) is None


@pytest.mark.parametrize(
    "path", ["good.gguf", "UD-Q2_K_XL/model-UD-Q2_K_XL.gguf", "한국어/모델.gguf", "a b.gguf"]
)
def test_a_usual_path_stays_as_it_is(path: str) -> None:
    assert str(safe_path(path)) == path


@given(st.text(max_size=60))
def test_d07_a_path_never_leaves_its_folder(path: str) -> None:
    safe = safe_path(path)
    assert safe is None or (not safe.is_absolute() and ".." not in safe.parts and "\\" not in str(safe))


@pytest.mark.parametrize("repo", ["Qwen/Qwen3-8B-GGUF", "a/b", "meta-llama/Llama-3.2-1B", "_x/y_"])
def test_repositories_have_an_organisation_and_a_name(repo: str) -> None:
    assert checked_repo(repo) == repo


@pytest.mark.parametrize(
    "repo",
    [
        "gpt2",
        "a/b/c",
        "../../evil.gguf",
        "a/..",
        "./b",
        "a/b c",
        "a/b.git",
        "a/b--c",
        "a/-b",
        "con/x",
        "a/" + "b" * 96,
    ],
)
def test_d07_what_is_no_repository_is_refused(repo: str) -> None:
    assert not is_repo(repo)
    with pytest.raises(InvalidRequest):
        checked_repo(repo)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", Reference("a/b")),
        ("hf:a/b", Reference("a/b")),
        ("a/b@Q4_K_M", Reference("a/b", "Q4_K_M")),
        ("a/b:UD-Q2_K_XL", Reference("a/b", "UD-Q2_K_XL")),
        ("a/b/old/model.gguf", Reference("a/b", "old/model.gguf")),
        ("a/b@old/model.gguf", Reference("a/b", "old/model.gguf")),
        ("https://huggingface.co/a/b", Reference("a/b")),
        ("https://huggingface.co/a/b/", Reference("a/b")),
        ("hf.co/a/b", Reference("a/b")),
        ("https://hf.co/a/b/tree/v2", Reference("a/b", None, "v2")),
        ("https://huggingface.co/a/b/blob/main/x/y.gguf", Reference("a/b", "x/y.gguf")),
        ("https://huggingface.co/a/b/resolve/abc/y.gguf?download=true", Reference("a/b", "y.gguf", "abc")),
        ("https://mirror.example/hub/a/b", Reference("a/b")),
    ],
)
def test_a_reference_is_read(text: str, expected: Reference) -> None:
    assert parse_reference(text, "https://mirror.example/hub") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../../evil.gguf",
        "a/b@",
        "a/b/../../evil.gguf",
        "a/b@../../evil.gguf",
        "https://evil.example/a/b",
        "https://huggingface.co/a/b/resolve/main/%2e%2e/%2e%2e/evil.gguf",
        "https://huggingface.co/datasets",
        "model",
    ],
)
def test_d07_what_names_nothing_is_refused(text: str) -> None:
    assert not is_reference(text)
    with pytest.raises(InvalidRequest):
        parse_reference(text)


@given(st.text(max_size=80))
def test_a_reference_is_read_or_refused(text: str) -> None:
    if is_reference(text):
        assert is_repo(parse_reference(text).repo)
