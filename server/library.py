"""What can be done with models on disk, for the routes and for the command line alike; all of it waits."""

from pathlib import Path
from typing import Literal

from octavo.core.client.types import ModelRecord, VerifyAnswer
from octavo.core.config.paths import Home
from octavo.core.errors import ModelNotFound
from octavo.core.gguf import printable
from octavo.core.library import Catalog
from octavo.core.library.checksums import Checksums
from octavo.core.library.fingerprint import Duplicates, Fingerprints, duplicates
from octavo.core.library.models import Model
from octavo.core.library.projector_choices import NONE, check_projector
from octavo.core.library.removal import Removal, plan_removal, run_removal
from octavo.core.library.rows import outside_row
from octavo.core.library.verify import Cancel, Progress, is_sound, verify
from octavo.server.records import model_record


def duplicates_of(catalog: Catalog, home: Home) -> list[Duplicates]:
    """List the models that are on disk more than once."""
    return duplicates(catalog.fresh(), Fingerprints(home.cache / "fingerprints.msgpack"))


def verified(
    catalog: Catalog,
    home: Home,
    name: str,
    progress: Progress,
    cancelled: Cancel,
    *,
    accept: bool = False,
    allow_path: bool = True,
) -> VerifyAnswer:
    """Read a model whole and compare its checksums."""
    model = catalog.find(name, allow_path=allow_path)
    files = verify(model, Checksums(home), progress, cancelled, accept=accept)
    return VerifyAnswer(model=model.id, is_sound=is_sound(files), files=files)


def removed(catalog: Catalog, name: str, *, dry_run: bool, permanently: bool) -> Removal:
    """Delete the model of this whole id, or with ``dry_run`` say what that would do."""
    models = catalog.refresh()
    plan = plan_removal(exact(catalog, name), models, catalog.roots, permanently=permanently)
    return plan.told if dry_run else run_removal(plan)


def exact(catalog: Catalog, name: str) -> Model:
    """Find a model by its whole id; a part of one is refused, though it fits one model only.

    Raises ``ModelNotFound`` and ``AmbiguousModel``, both with ``candidates``.
    """
    for model in catalog.models():
        if model.id == name:
            return model
    near = catalog.find(name, allow_path=False)
    raise ModelNotFound(
        f"{printable(name)!r} is not the whole id of a model.",
        hint=f"Did you mean {near.id}?",
        candidates=[near.id],
    )


def projector_chosen(catalog: Catalog, name: str, projector: str) -> ModelRecord:
    """Have a projector go with a model: a file's path, ``none``, or ``auto`` for what the headers say."""
    model = catalog.find(name)
    choice: Path | Literal["none", "auto"]
    if projector == NONE:
        choice = "none"
    elif projector == "auto":
        choice = "auto"
    else:
        choice = Path(projector).expanduser().absolute()
        check_projector(model, outside_row(choice) if choice.is_file() else None, projector)
    catalog.choices.choose(model, choice)
    catalog.refresh()
    return model_record(catalog.find(model.id), [])
