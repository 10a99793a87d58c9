"""A service process over the fake runtime, started like the real one."""

import sys

from octavo.core.config import paths
from octavo.server.service import run_service
from tests.fakes import FakeRuntime

if __name__ == "__main__":
    sys.exit(run_service(paths.home(), make_runtime=FakeRuntime))  # type: ignore[arg-type]
