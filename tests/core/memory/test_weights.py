"""Which tensors an active model hardly reads: tables that are looked up, and layers that nothing computes."""

from pathlib import Path

from octavo.core.gguf import read_header
from octavo.core.memory.shape import skipped_layers
from octavo.core.memory.weights import unread_tensors
from tests.fixtures.gguf_builder import TensorEntry, tiny


def unread(*names: str, **metadata: int) -> set[str]:
    """Give what is hardly read of a tiny model with tensors of these names."""
    file = tiny(**metadata)
    file.tensors = [TensorEntry(name, (32,)) for name in names]
    header = read_header(file.build())
    return set(unread_tensors(header, skipped_layers(header)))


def test_a_table_that_is_no_output_is_hardly_read() -> None:
    found = unread("token_embd.weight", "output.weight", "blk.0.attn_q.weight")
    assert found == {"token_embd.weight"}


def test_a_tied_table_is_read_for_every_token() -> None:
    assert unread("token_embd.weight", "per_layer_token_embd.weight", "blk.0.ffn_up.weight") == {
        "per_layer_token_embd.weight"
    }


def test_layers_that_nothing_computes_are_not_read() -> None:
    names = ("output.weight", "blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.1.nextn.eh_proj.weight")
    assert unread(*names, nextn_predict_layers=1) == {"blk.1.attn_q.weight", "blk.1.nextn.eh_proj.weight"}
    assert unread(*names) == set()


def test_experts_are_not_called_unread_they_are_read_in_turn() -> None:
    assert unread("output.weight", "blk.0.ffn_up_exps.weight") == set()


def test_the_starter_model_is_tied(smollm2: Path) -> None:
    header = read_header(smollm2)
    assert unread_tensors(header, skipped_layers(header)) == frozenset()
