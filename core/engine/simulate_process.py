"""The child process of ``simulate``: llama.cpp with ``no_alloc``, one JSON line per configuration.

The task comes on standard input; results go out on what was standard output, which is moved away first, so
that nothing a C library prints can break them.
"""

import ctypes
import os
import platform
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.simulate import Line, Refused, Simulated, Task, _LoadRefused

MIB = 1024 * 1024
# src/llama-kv-cache.cpp, llama-memory-recurrent.cpp, llama-context.cpp: the lines under no_alloc
KV_LINE = re.compile(r"llama_kv_cache\w*: size = +([\d.]+) MiB \( *\d+ cells")
RECURRENT_LINE = re.compile(r"RS buffer size = +([\d.]+) MiB")
COMPUTE_LINE = re.compile(r"compute buffer size = +([\d.]+) MiB")
OUTPUT_LINE = re.compile(r"output buffer size = +([\d.]+) MiB")
ROUNDING = 0.005 * MIB + 1
"""How far one figure of the log can be from the truth, in bytes."""


class Recorder:
    """The log lines since the last ``clear``."""

    def __init__(self, bindings: Any) -> None:
        from octavo.core.engine.log import EngineLog

        self.lines: list[str] = []
        self.errors: list[str] = []
        self._log = EngineLog(bindings, self._take)

    def clear(self) -> None:
        """Forget all lines."""
        self.lines, self.errors = [], []

    def figures(self, pattern: re.Pattern[str]) -> list[int]:
        """Give the bytes that lines of one kind tell, to 0.01 MiB."""
        return [round(float(found[1]) * MIB) for line in self.lines if (found := pattern.search(line))]

    def cause(self) -> str:
        """Give the first error, without the function's name."""
        first = self.errors[0] if self.errors else "it gave no reason"
        return (first.partition(": ")[2] or first).rstrip(".")

    def _take(self, level: str, text: str) -> None:
        self.lines.append(text)
        if level == "error":
            self.errors.append(text)


class _Map(ctypes.Structure):
    """libstdc++'s ``std::map``: the header node of a red-black tree (bits/stl_tree.h)."""

    _fields_ = [
        ("compare", ctypes.c_uint64),
        ("color", ctypes.c_uint64),
        ("root", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
        ("right", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
    ]


class _Node(ctypes.Structure):
    """A node of it: a buffer type and three sizes (src/llama-context.h, llama_memory_breakdown_data)."""

    _fields_ = [
        ("color", ctypes.c_uint64),
        ("parent", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
        ("right", ctypes.c_void_p),
        ("buffer_type", ctypes.c_void_p),
        ("model", ctypes.c_size_t),
        ("context", ctypes.c_size_t),
        ("compute", ctypes.c_size_t),
    ]


class Breakdown:
    """``llama_get_memory_breakdown``, which has no C name: only with a known ABI, only while it agrees."""

    def __init__(self, library: Any) -> None:
        self._function = library["_Z26llama_get_memory_breakdownPK13llama_context"]
        self._function.argtypes, self._function.restype = [ctypes.c_void_p], _Map
        self._name = library.ggml_backend_buft_name
        self._name.argtypes, self._name.restype = [ctypes.c_void_p], ctypes.c_char_p

    def read(self, context: Any) -> dict[str, tuple[int, int, int]]:
        """Give (model, context, compute) bytes by buffer type."""
        found = self._function(context)
        return {
            self._name(node.buffer_type).decode(): (node.model, node.context, node.compute)
            for node in _walk(found.root)
        }


def _walk(place: int | None) -> Iterator[_Node]:
    if place:
        node = _Node.from_address(place)
        yield from _walk(node.left)
        yield node
        yield from _walk(node.right)


def _breakdown(library: Any) -> Breakdown | None:
    """Give the exact reader where its layout is known (libstdc++ on 64-bit Linux)."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return None
    try:
        return Breakdown(library)
    except AttributeError:
        return None


class Simulator:
    """llama.cpp, asked what it would allocate."""

    def __init__(self, may_use_breakdown: bool) -> None:
        from octavo.core.engine import llama

        self._llama = llama
        self._recorder = Recorder(llama.C)
        self._breakdown = _breakdown(llama.C._lib) if may_use_breakdown else None
        llama.C.llama_backend_init()

    def run(self, task: Task) -> Iterator[Line]:
        """Give one line per configuration, in order; loads anew only where the weights' places change."""
        loaded: tuple[object, Any] | None = None
        for config in task.configs:
            placing = (config.repack, config.gpu_layers, config.cpu_moe_layers, config.tensor_split)
            if loaded is None or loaded[0] != placing:
                if loaded is not None:
                    self._llama.C.llama_model_free(loaded[1])
                loaded = (placing, self._load(task.path, config))
                if not loaded[1]:
                    yield _LoadRefused(self._recorder.cause(), self._recorder.lines[-12:])
                    return
            yield self._simulate(loaded[1], config)

    def _load(self, path: str, config: LoadConfig) -> Any:
        self._recorder.clear()
        parameters, kept = self._llama.model_parameters(config)
        parameters.no_alloc, parameters.load_mode = (
            True,
            0,
        )  # with mmap, llama.cpp aborts (src/llama-model.cpp)
        handle = self._llama.C.llama_model_load_from_file(path.encode(), parameters)
        del kept
        return handle

    def _simulate(self, model: Any, config: LoadConfig) -> Line:
        self._recorder.clear()
        bindings = self._llama.C
        trained = int(bindings.llama_model_n_ctx_train(model))
        context = bindings.llama_init_from_model(model, self._llama.context_parameters(config, trained))
        if not context:
            return Refused(self._recorder.cause())
        try:
            return self._exact(context, self._from_log(model, context))
        finally:
            bindings.llama_free(context)

    def _from_log(self, model: Any, context: Any) -> Simulated:
        bindings, figures = self._llama.C, self._recorder.figures
        return Simulated(
            n_ctx=int(bindings.llama_n_ctx(context)),
            n_ctx_per_slot=int(bindings.llama_n_ctx_seq(context)),
            kv=sum(figures(KV_LINE)),
            recurrent=sum(figures(RECURRENT_LINE)),
            compute=sum(figures(COMPUTE_LINE)),
            output=sum(figures(OUTPUT_LINE)),
            weights={"CPU": int(bindings.llama_model_size(model))},
            is_exact=False,
        )

    def _exact(self, context: Any, rounded: Simulated) -> Simulated:
        """Replace rounded figures by exact ones, if both agree; else never ask that symbol again."""
        if self._breakdown is None:
            return rounded
        rows = self._breakdown.read(context)
        model, held, compute = (sum(row[i] for row in rows.values()) for i in range(3))
        lines = len(self._recorder.figures(KV_LINE)) + len(self._recorder.figures(RECURRENT_LINE))
        agrees = (
            abs(held - rounded.kv - rounded.recurrent) <= ROUNDING * lines
            and abs(compute - rounded.compute) <= ROUNDING * max(len(rows), 1)
            and model >= rounded.weights["CPU"]
        )
        if not agrees:
            self._breakdown = None
            return rounded
        recurrent = (rounded.recurrent if rounded.kv else held) if rounded.recurrent else 0
        return msgspec.structs.replace(
            rounded,
            kv=held - recurrent,
            recurrent=recurrent,
            compute=compute,
            weights={name: row[0] for name, row in rows.items() if row[0]},
            is_exact=True,
        )


def main() -> None:
    """Read the task, write the lines."""
    results = _take_standard_output()
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    for line in Simulator(task.may_use_breakdown).run(task):
        results.write(msgspec.json.encode(line) + b"\n")
        results.flush()  # a broken pipe ends us: nobody waits any more


def _take_standard_output() -> BinaryIO:
    """Move the pipe away from descriptor 1 and let 1 point where errors go."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


if __name__ == "__main__":
    main()
