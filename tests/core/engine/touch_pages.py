"""Pin pages as a user who may lock none, drop them, and tell whether they come back.

Run as ``touch_pages.py FILE``; run by root it becomes nobody first, who must own the file. Prints JSON.
"""

import json
import mmap
import os
import queue
import resource
import sys
import time

from octavo.core.engine import madvise
from octavo.core.engine.maps import FileMaps, regions
from octavo.core.engine.pages import PageControl
from octavo.core.engine.protocol import AnyReport, PagesDone, Pin
from octavo.core.memory.layout import PageRange

NOBODY = 65_534
DEADLINE_S = 20


def main() -> None:
    """Pin, drop, and look again."""
    path = sys.argv[1]
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    reports: queue.Queue[AnyReport] = queue.Queue()
    maps = FileMaps([path], regions())
    control = PageControl(maps, reports.put)
    control.begin(Pin("pin", [PageRange(file=0, start=0, stop=len(mapped))]))
    done = reports.get(timeout=DEADLINE_S)
    assert isinstance(done, PagesDone), done
    ((address, length),) = maps.spans(PageRange(file=0, start=0, stop=len(mapped)))
    print(json.dumps({"kind": done.kind, "reason": done.reason, "back": comes_back(path, address, length)}))
    os._exit(0)  # the pages' thread goes on touching


def comes_back(path: str, address: int, length: int) -> bool:
    """Drop all pages and wait until they are there again."""
    madvise.advise(address, length, madvise.DONTNEED)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    give_up = time.monotonic() + DEADLINE_S
    while time.monotonic() < give_up:
        if madvise.present_pages(address, length) == length // madvise.PAGE:
            return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    main()
