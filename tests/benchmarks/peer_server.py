"""Start llama.cpp's own server from the wheel ``xllamacpp``, in an environment of its own; print its address.

python peer_server.py MODEL SLOTS CONTEXT_PER_SLOT THREADS
"""

import sys
import time

import xllamacpp  # type: ignore[import-not-found]  # only in the peer's own environment


def main(model: str, slots: int, context: int, threads: int) -> None:
    """Serve until killed."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_parallel, parameters.n_ctx, parameters.n_gpu_layers = slots, slots * context, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.no_extra_bufts = True  # the same kernels on both sides: no repacking
    parameters.warmup, parameters.verbosity = True, 0
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
