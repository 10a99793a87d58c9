"""A long context, filled: what the worker takes is what was forecast."""

from pathlib import Path

import pytest

from octavo.core.config.load_config import LoadConfig
from tests.core.memory.test_estimate_real import check_filled


@pytest.mark.parametrize("name", ["smollm2", "gemma"])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_filled_worker_is_what_was_told_before(
    name: str, slots: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    config = LoadConfig(context=4096, slots=slots, threads=1)
    check_filled(request.getfixturevalue(name), tmp_path, config)
