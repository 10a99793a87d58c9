"""Whether a folder is there, asked by many at once and of drives that don't answer."""

import os
import threading
import time
from pathlib import Path

import pytest

from octavo.core.library.reach import Reach


def test_who_asks_meanwhile_gets_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.stat

    def slow(path: object, **more: object) -> os.stat_result:
        if path == tmp_path:
            time.sleep(0.3)
        return real(path, **more)  # type: ignore[arg-type, call-overload, no-any-return]

    monkeypatch.setattr("octavo.core.library.reach.os.stat", slow)
    reach, found = Reach(patience_s=20), list[object]()
    threads = [threading.Thread(target=lambda: found.append(reach.place(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4 and None not in found


def test_a_drive_that_never_answers_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()

    def dead(path: object) -> os.stat_result:
        answer.wait(30)
        raise OSError("the drive is gone")

    monkeypatch.setattr("octavo.core.library.reach.os.stat", dead)
    reach = Reach(patience_s=0.3)
    assert reach.place(tmp_path) is None
    started = time.monotonic()
    assert reach.place(tmp_path) is None
    assert time.monotonic() - started < 0.25
    answer.set()
    while any(thread.name == "folder probe" for thread in threading.enumerate()):
        time.sleep(0.01)  # it must not outlive the test
