"""How ``octavo get`` shows downloads: a line that follows one, a table of all, the end of one."""

import sys
from typing import TYPE_CHECKING

from octavo.server.cli.console import print_table, say, size

if TYPE_CHECKING:
    from octavo.core.client.types import DownloadAnswer
    from octavo.core.hub.types import Download

_BAR = 24


class Progress:
    """A line on stderr that is drawn anew; without a terminal only what changes is told, a line each."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._told = ""

    def show(self, download: "Download") -> None:
        """Show how it stands."""
        if self._is_terminal:
            print(f"\r\x1b[K{line(download)}", end="", file=sys.stderr, flush=True)
        elif (state := _state(download)) != self._told:
            self._told = state
            say(f"{download.wish.repo}@{download.wish.name}: {state}")

    def end(self, download: "Download | None") -> None:
        """Leave the line."""
        if download is not None and self._is_terminal:
            print(f"\r\x1b[K{line(download)}", file=sys.stderr, flush=True)


def line(download: "Download") -> str:
    """Write a download in one line: bar, share, bytes, speed, time left or what it waits for."""
    share = download.done_bytes / download.total_bytes if download.total_bytes else 1.0
    bar = "█" * int(share * _BAR) + "·" * (_BAR - int(share * _BAR))
    done = f"{share:4.0%} of {size(download.total_bytes)}"
    if download.state != "running":
        return f"{bar} {done}  {_state(download)}"
    left = f", {_span(download.seconds_left)} left" if download.seconds_left is not None else ""
    return f"{bar} {done}  {size(round(download.bytes_per_s))}/s{left}"


def show_all(downloads: "list[Download]", *, is_at_work: bool = True) -> None:
    """Print a table of downloads; without a service none is at work: what waits was interrupted."""
    if not downloads:
        say("There are no downloads.")
        return
    print_table(
        ("ID", "MODEL", "SIZE", "DONE", "STATE"),
        (
            (
                each.id,
                f"{each.wish.repo}@{each.wish.name}",
                size(each.total_bytes),
                f"{each.done_bytes / each.total_bytes:.0%}" if each.total_bytes else "",
                "interrupted" if each.state == "queued" and not is_at_work else _state(each),
            )
            for each in downloads
        ),
    )
    if not is_at_work and any(each.state == "queued" for each in downloads):
        say("No service runs. What was interrupted goes on when one does: octavo get --resume ID.")


def show_end(told: "DownloadAnswer") -> None:
    """Print what has become of a download."""
    download = told.download
    if download is None:
        print(f"It is in the library already ({size(told.total_size_bytes or 0)}).")
        return
    for note in download.notes:
        print(note)
    if download.state == "done":
        badge = "✓ verified by its published SHA-256" if download.is_verified else "no SHA-256 is published"
        print(f"{download.wish.repo}@{download.wish.name}: {size(download.total_bytes)}, {badge}.")
        if download.unreadable is not None:
            print(f"It is what was published, but it can't be read as a model: {_fault(download)}")
            return
        print(f"octavo load {download.wish.publisher}/{download.wish.model}")


def _fault(download: "Download") -> str:
    fault = download.unreadable
    message = fault.message if fault is not None else ""
    return message if message.endswith(".") else f"{message}."


def _state(download: "Download") -> str:
    if download.state == "running":
        return "downloading"
    if download.unreadable is not None:
        return f"{download.state}, but no readable model: {_fault(download)}"
    if download.error is not None:
        return f"{download.state}: {download.error.message}"
    return download.state


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
