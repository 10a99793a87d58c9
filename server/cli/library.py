"""Read the library for the verbs: from the running service, else from the disk."""

from octavo.core.client.types import ModelRecord, ShownModel
from octavo.core.config.settings import SettingsFile
from octavo.core.library import Catalog
from octavo.core.library.search import matching
from octavo.core.memory.ledger import Ledger
from octavo.server.cli.reach import checked_home, running
from octavo.server.records import model_record, model_records


async def records(text: str = "") -> list[ModelRecord]:
    """List the library, or what of it holds every word of ``text``."""
    client = await running()
    if client is None:
        return model_records(matching(catalog().refresh(), text))
    async with client:
        return await client.models(text)


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
    chosen = SettingsFile(home.settings).current.library
    return Catalog.of_home(home, lambda: chosen)
