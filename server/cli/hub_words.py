"""How the verbs that concern the Hub show what they found."""

from typing import TYPE_CHECKING

from octavo.server.cli.console import print_table, say, size

if TYPE_CHECKING:
    from octavo.core.hub.types import Choice, Repository, SearchPage

VERDICTS = {"resident": "stays in memory", "pages": "pages from disk", "wont_run": "will not run"}


def show_page(page: "SearchPage") -> None:
    """Print what a search found."""
    if not page.models:
        say("Nothing was found: try fewer words or filters.")
        return
    head = ("REPOSITORY", "PARAMS", "ARCH", "DOWNLOADS", "LIKES", "")
    print_table(
        head,
        (
            (
                model.id,
                count(model.parameters),
                model.architecture or "",
                f"{model.downloads:,}",
                f"{model.likes:,}",
                ", ".join(
                    word for word, is_so in (("gated", model.gated), ("private", model.private)) if is_so
                ),
            )
            for model in page.models
        ),
    )
    if page.next_page:
        say(f"There are more: --page {page.next_page}")


def show_repository(found: "Repository") -> None:
    """Print what a repository offers, with what each choice would do here."""
    gated = ", gated" if found.gated else ""
    print(f"{found.id} at {found.revision[:12]}: {found.downloads:,} downloads, {found.likes:,} likes{gated}")
    if found.choices:
        print_table(("CHOICE", "SIZE", "BITS", "HERE", ""), (_row(found, choice) for choice in found.choices))
    if found.recommended:
        print(f"Take {found.recommended}: {found.reason}.")
        print(f"octavo get {found.id}@{found.recommended}")
    elif found.reason and (found.choices or not found.hidden_files):
        print(f"{found.reason[0].upper()}{found.reason[1:].rstrip('.')}.")
    if found.hidden_files:
        files = "1 file is" if found.hidden_files == 1 else f"{found.hidden_files} files are"
        rest = "" if found.choices else " There is no other model in it."
        say(f"{files} left out: their names can't be used on a disk.{rest}")


def count(parameters: int | None) -> str:
    """Write a number of parameters as people do: 8.0B."""
    if not parameters:
        return ""
    for unit, size_of in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if parameters >= size_of:
            return f"{parameters / size_of:.1f}{unit}"
    return str(parameters)


def _row(found: "Repository", choice: "Choice") -> tuple[str, ...]:
    bits = f"{choice.bits_per_weight:.1f}" if choice.bits_per_weight else ""
    extra = f" + {size(choice.projector.size_bytes)}" if choice.projector else ""
    mark = "recommended" if choice.name == found.recommended else _note(choice)
    return choice.name, f"{size(choice.size_bytes)}{extra}", bits, _verdict(choice), mark


def _verdict(choice: "Choice") -> str:
    fit = choice.fit
    if fit is None:
        return "?"
    rate = fit.tokens_per_second
    speed = f", {rate.low:.1f}–{rate.high:.1f} tok/s" if rate else ""
    return VERDICTS[fit.verdict] + speed


def _note(choice: "Choice") -> str:
    if choice.missing:
        return f"incomplete: {len(choice.missing)} parts are missing"
    return choice.note
