"""The low-level bindings of llama-cpp-python, without the package's own front.

``import llama_cpp`` pulls in numpy, Jinja and the high-level class: 20 MiB and half a second in each worker.
A bare package object in its place lets the one module that we need be imported alone.
"""

import importlib
import importlib.util
import sys
import types
from typing import Any

from octavo.core.errors import LoadFailed


def load_bindings() -> Any:
    """Give the module ``llama_cpp.llama_cpp``; raises ``LoadFailed`` when the engine isn't installed."""
    if "llama_cpp" not in sys.modules:
        specification = importlib.util.find_spec("llama_cpp")
        if specification is None or specification.submodule_search_locations is None:
            raise LoadFailed("llama-cpp-python is not installed.", hint="Run make setup.")
        package = types.ModuleType("llama_cpp")
        package.__path__ = list(specification.submodule_search_locations)
        package.__spec__ = specification
        package.__file__ = specification.origin
        sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")
