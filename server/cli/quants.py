"""``octavo quants``: how the quantisations pack their weights, and how large a model is in each."""

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, print_table, say, size

if TYPE_CHECKING:
    from octavo.core.gguf import Header
    from octavo.core.gguf.layouts import Layout

Model = Annotated[str | None, typer.Argument(metavar="MODEL", help="Give its size in each type.")]
Row = dict[str, object]


def quants(model: Model = None, json: Json = False) -> None:
    """List every tensor type: block, scales, bits per weight, and the size of MODEL in it."""
    answer(lambda: _table(model), json, _show)


def _table(name: str | None) -> dict[str, object]:
    from octavo.core.gguf import printable
    from octavo.core.gguf.layouts import LAYOUTS, RULE

    key, header = _found(name) if name else (None, None)
    # the finest first, as one reads down to smaller files
    ordered = sorted(LAYOUTS.values(), key=lambda layout: (-layout.type.bits_per_weight, layout.type.name))
    return {
        "model": printable(key) if key else None,
        "model_bytes": header.complete_size if header else None,
        "rule": RULE,
        "types": [_row(layout, header) for layout in ordered],
    }


def _found(name: str) -> "tuple[str, Header]":
    from octavo.core.gguf import read_model
    from octavo.server.cli.library import catalog

    model = catalog().find(name)
    model.require_sound()
    return model.id, read_model(model.path)


def _row(layout: "Layout", header: "Header | None") -> Row:
    from octavo.core.gguf.layouts import size_in

    kind = layout.type
    return {
        "name": kind.name,
        "code": kind.code,
        "block_weights": kind.block_size,
        "block_bytes": kind.block_bytes,
        "bits_per_weight": kind.bits_per_weight,
        "sub_blocks": layout.sub_blocks,
        "sub_block_weights": kind.block_size // layout.sub_blocks if layout.sub_blocks else 0,
        "fields": [{"name": f.name, "bytes": f.nbytes, "meaning": f.meaning} for f in layout.fields],
        "formula": layout.formula,
        "for_weights": layout.is_for_weights,
        "model_bytes": size_in(header, kind) if header and layout.is_for_weights else None,
    }


def _show(table: dict[str, object]) -> None:
    head = ("TYPE", "BITS", "BLOCK", "BYTES", "SCALES", "FIELDS", "WEIGHT")
    has_model = table["model"] is not None
    rows = table["types"]
    assert isinstance(rows, list)
    print_table((*head, "SIZE") if has_model else head, (_line(row, has_model) for row in rows))
    if has_model:
        say(f"\n{table['model']} is {_size(table['model_bytes'])} now. {table['rule']}")


def _line(row: Row, has_model: bool) -> tuple[str, ...]:
    fields = row["fields"]
    assert isinstance(fields, list)
    scales = f"{row['sub_blocks']} × {row['sub_block_weights']}" if row["sub_blocks"] else "-"
    cells = (
        str(row["name"]),
        f"{row['bits_per_weight']:.7g}",
        str(row["block_weights"]),
        str(row["block_bytes"]),
        scales,
        " + ".join(f"{field['name']} {field['bytes']}" for field in fields),
        str(row["formula"]),
    )
    return (*cells, _size(row["model_bytes"])) if has_model else cells


def _size(count: object) -> str:
    return size(count) if isinstance(count, int) else "-"
