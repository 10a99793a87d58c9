"""One template helper for all tests of a module."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.core.prompts.rendering import Rendering


@pytest.fixture(scope="module")
def rendering() -> Iterator[Rendering]:
    """A running helper."""
    with asyncio.Runner() as runner:
        rendering = Rendering(runner)
        yield rendering
        runner.run(rendering.templates.close())
