"""Find a loaded model by what a person calls it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from octavo.core.errors import OctavoError


class Named(Protocol):
    """Something loaded: the name that it is loaded under, and its model's id."""

    @property
    def instance(self) -> str:
        """The name that it is loaded under."""
        ...

    @property
    def model(self) -> str:
        """The model's id."""
        ...


def loaded_name(name: str, loaded: Sequence[Named]) -> str:
    """Give the one instance of that name, of that model, or with that in its name; raises when none fits."""
    wanted = name.casefold()
    for names in (
        [one.instance for one in loaded if one.instance == name],
        [one.instance for one in loaded if one.model == name],
        [one.instance for one in loaded if wanted in f"{one.instance} {one.model}".casefold()],
    ):
        if names:
            if len(names) > 1:
                raise _several(name, names)
            return names[0]
    raise no_such_model(name, [one.instance for one in loaded])


def no_such_model(name: str, loaded: list[str]) -> "OctavoError":
    """Make the error that no loaded model is called that; it says which are loaded."""
    from octavo.core.errors import ModelNotFound

    hint = f"Loaded: {', '.join(loaded)}." if loaded else "Nothing is loaded."
    return ModelNotFound(f"No loaded model is named {name!r}.", hint=hint, candidates=loaded)


def _several(name: str, names: list[str]) -> "OctavoError":
    from octavo.core.errors import AmbiguousModel

    return AmbiguousModel(f"{name!r} fits {', '.join(names)}.", hint="Give the whole name.", candidates=names)
