"""What a process that runs foreign templates may use, as far as the platform can enforce it."""

import os
import sys

MEMORY_BYTES = 512 * 1024 * 1024
PROCESSOR_S = 4

_PR_SET_PDEATHSIG = 1


def confine(parent: int) -> None:
    """Die with ``parent``, cap the memory, and open no file, socket or pipe from now on."""
    if sys.platform == "linux":
        _die_with(parent)
    if sys.platform != "win32":
        _cap_resources()


def allow_processor_time() -> None:
    """Allow this process some more seconds of processor time, in case nobody is left to end it."""
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + PROCESSOR_S
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


if sys.platform != "win32":

    def _cap_resources() -> None:
        import resource

        # macOS refuses a cap on the address space; the parent's clock still ends what grows there
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _die_with(parent: int) -> None:
    import ctypes
    import signal

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
