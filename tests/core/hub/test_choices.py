"""What a listing comes to: choices, their names and sizes, and the projector that goes along."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import HubFileNotFound
from octavo.core.hub.choices import model_groups, offered, pick, pick_projector
from octavo.core.hub.quant_names import kind_of, quant_of
from octavo.core.hub.types import HubFile, Repository
from tests.fixtures.hub_repositories import HOSTILE, NESTED


def listing(*paths: str) -> list[HubFile]:
    """List these files; each is a byte larger than the one before."""
    return [HubFile(path=path, size_bytes=1000 + number) for number, path in enumerate(paths)]


def repository(*paths: str) -> Repository:
    offer = offered(listing(*paths))
    return Repository(
        id="a/b", author="a", revision="c" * 40, choices=offer.choices, projectors=offer.projectors
    )


def test_d10_quants_in_subfolders() -> None:
    offer = offered(listing(*NESTED))
    found = {choice.name: choice for choice in offer.choices}
    assert set(found) == {"Q4_K_M", "UD-Q2_K_XL", "old/model", "new/model"}
    assert [file.path for file in found["Q4_K_M"].files] == NESTED[:2]
    assert found["Q4_K_M"].size_bytes == 1000 + 1001 and not found["Q4_K_M"].missing
    assert found["UD-Q2_K_XL"].size_bytes == 1002
    assert [found[name].files[0].path for name in ("old/model", "new/model")] == NESTED[3:5]
    assert all(choice.projector and choice.projector.path == "mmproj-F16.gguf" for choice in offer.choices)
    assert [file.path for file in offer.projectors] == ["mmproj-F16.gguf"]
    assert offer.hidden == 0  # ._model.gguf is macOS's, not hostile


def test_d07_hostile_names_are_left_out_and_counted() -> None:
    offer = offered(listing(*HOSTILE))
    assert [choice.name for choice in offer.choices] == ["good"]
    assert offer.hidden == len(HOSTILE) - 1


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("model.i1-IQ3_XXS.gguf", "IQ3_XXS"),
        ("gemma-2-9b-it-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("llama-2-7b.q4_k_m.gguf", "Q4_K_M"),
        ("Llama-3.2-1B-Instruct-f16.gguf", "F16"),
        ("x-FP16.gguf", "F16"),
        ("x-bf16.gguf", "BF16"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("x-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("x-TQ1_0.gguf", "TQ1_0"),
        ("x-Q4_0_4_4.gguf", "Q4_0_4_4"),
        ("x-Q6_K_L.gguf", "Q6_K_L"),
        ("x-IQ4_NL.gguf", "IQ4_NL"),
        ("x.Q8_0-00001-of-00003.gguf", "Q8_0"),
        ("BF16/x-00001-of-00002.gguf", "BF16"),
        ("model.gguf", None),
        ("QwQ-32B.gguf", None),
        ("Phi-3-mini-4k-instruct-q4.gguf", "Q4"),
    ],
)
def test_a_quant_is_read_from_the_name(name: str, quant: str | None) -> None:
    assert quant_of(PurePosixPath(name)) == quant


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mmproj-model-f16.gguf", "projector"),
        ("x.mmproj-Q8_0.gguf", "projector"),
        ("imatrix.gguf", "imatrix"),
        ("x-imatrix.gguf", "imatrix"),
        ("x-imatrix-Q4_K_M.gguf", "model"),
        ("x-lora-f16.gguf", "adapter"),
        ("x-lora.gguf", "adapter"),
        ("alpaca-lora-65b.Q4_K_M.gguf", "model"),
        ("explorer-7b-Q4_0.gguf", "model"),
    ],
)
def test_what_is_no_model_is_told_by_its_name(name: str, kind: str) -> None:
    assert kind_of(PurePosixPath(name)) == kind


def test_d10_an_incomplete_set_is_marked() -> None:
    offer = offered(listing("Q8_0/x-Q8_0-00001-of-00003.gguf", "Q8_0/x-Q8_0-00003-of-00003.gguf"))
    (choice,) = offer.choices
    assert choice.missing == ["Q8_0/x-Q8_0-00002-of-00003.gguf"]


def test_the_same_quant_twice_is_told_apart() -> None:
    names = [choice.name for choice in offered(listing("x-Q4_K_M.gguf", "imat/x-Q4_K_M.gguf")).choices]
    assert sorted(names) == ["Q4_K_M", "imat/Q4_K_M"]
    names = [choice.name for choice in offered(listing("one-Q4_0.gguf", "two-Q4_0.gguf")).choices]
    assert sorted(names) == ["one-Q4_0", "two-Q4_0"]


def test_other_files_are_no_choices() -> None:
    offer = offered(
        listing("README.md", "x-lora.gguf", "imatrix.gguf", "imatrix.dat", "config.json", ".gitattributes")
    )
    assert offer.choices == [] and offer.hidden == 0


def test_a_projector_of_its_own_name_and_f16_comes_first() -> None:
    paths = ["x-Q4_0.gguf", "y-Q4_0.gguf", "mmproj-x-Q8_0.gguf", "mmproj-x-F16.gguf", "mmproj-F32.gguf"]
    found = {choice.name: choice.projector for choice in offered(listing(*paths)).choices}
    assert {name: each.path for name, each in found.items() if each} == {
        "x-Q4_0": "mmproj-x-F16.gguf",
        "y-Q4_0": "mmproj-F32.gguf",
    }


def test_a_projector_of_another_model_stays_out() -> None:
    (choice,) = offered(listing("y-Q4_0.gguf", "mmproj-x-F16.gguf", "sub/mmproj-F16.gguf")).choices
    assert choice.projector is None


def test_a_choice_is_found_by_name_quant_or_file() -> None:
    found = repository(*NESTED, "Q8_0/x-UD-Q8_K_XL.gguf")
    assert pick(found, "q4_k_m").name == "Q4_K_M"
    assert pick(found, "UD-Q2_K_XL").name == "UD-Q2_K_XL"
    assert pick(found, "Q2_K_XL").name == "UD-Q2_K_XL"
    assert pick(found, "new/model.gguf").name == "new/model"
    assert pick(found, "model-Q4_K_M-00002-of-00002.gguf").name == "Q4_K_M"
    with pytest.raises(HubFileNotFound) as fault:
        pick(found, "model.gguf")
    assert sorted(fault.value.details["candidates"]) == ["new/model", "old/model"]  # type: ignore[arg-type]
    with pytest.raises(HubFileNotFound) as fault:
        pick(found, "Q9")
    assert "Q4_K_M" in fault.value.hint
    assert pick_projector(found, "mmproj-f16.gguf").path == "mmproj-F16.gguf"
    with pytest.raises(HubFileNotFound):
        pick_projector(found, "other.gguf")


def test_models_of_one_repository_are_grouped() -> None:
    found = repository(
        "x-8b-Q4_0.gguf", "Q8_0/x-8b-Q8_0.gguf", "x-1b-Q4_0.gguf", "big/x-8b-Q4_K_M.gguf", "plain.gguf"
    )
    names = sorted(sorted(choice.name for choice in group) for group in model_groups(found.choices))
    assert names == [["Q4_K_M"], ["Q8_0", "x-8b-Q4_0"], ["plain"], ["x-1b-Q4_0"]]


@given(
    st.lists(
        st.text(st.sampled_from("abA/.-Q4_K0123of\\\0"), max_size=24).map(lambda t: f"{t}.gguf"), max_size=12
    )
)
def test_any_listing_gives_names_of_their_own(paths: list[str]) -> None:
    offer = offered(listing(*paths))
    names = [choice.name for choice in offer.choices]
    files = [file.path for choice in offer.choices for file in choice.files]
    assert len(set(names)) == len(names) and len(set(files)) == len(files)
