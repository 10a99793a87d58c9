"""Read the library for the verbs: from the running service, else from the disk."""

from pathlib import Path

from octavo.core.client.types import ModelRecord, ShownModel
from octavo.core.config.settings import SettingsFile
from octavo.core.library import Catalog
from octavo.core.memory.ledger import Ledger
from octavo.server.cli.reach import checked_home, running
from octavo.server.records import model_record, model_records


async def records() -> list[ModelRecord]:
    """List the library."""
    client = await running()
    if client is None:
        return model_records(catalog().refresh())
    async with client:
        return await client.models()


async def record(name: str) -> ModelRecord:
    """Describe the model of this name; raises ``ModelNotFound`` or ``AmbiguousModel``."""
    found = model_record(catalog().find(name), [])
    loaded = [model for model in await records() if model.key == found.key]
    return loaded[0] if loaded else found


async def shown(name: str) -> ShownModel:
    """Describe a model and its last load; raises ``ModelNotFound`` or ``AmbiguousModel``."""
    found = await record(name)
    facts = {field: getattr(found, field) for field in found.__struct_fields__}
    return ShownModel(**facts, last_load=Ledger(checked_home().cache).last(found.key))


def catalog() -> Catalog:
    """Open the library of this home without the service."""
    home = checked_home()
    folders = SettingsFile(home.settings).current.library.folders
    roots = [home.models, *(Path(name).expanduser() for name in folders)]
    return Catalog(roots, home.cache / "catalog.msgpack")
