"""Filter the library by what a person types."""

from collections.abc import Iterable

from octavo.core.library.models import Model, clean_text, file_stem


def matching(models: Iterable[Model], text: str) -> list[Model]:
    """Give the models whose id, name, publisher, architecture, quant or file hold every word of ``text``."""
    words = clean_text(text).casefold().split()
    if not words:
        return list(models)
    return [model for model in models if _holds(_told(model), words)]


def _holds(told: str, words: list[str]) -> bool:
    return all(word in told for word in words)


def _told(model: Model) -> str:
    facts = model.description
    told = (facts.name, facts.architecture, facts.quant) if facts else ()
    names = (model.id, model.name, model.publisher, file_stem(model.path))
    return "\n".join((*names, *(each or "" for each in told))).casefold()
