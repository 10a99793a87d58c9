"""The token: where it is kept, where else one comes from, and that it is told nobody."""

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

from octavo.core.config.paths import Home
from octavo.core.errors import InvalidRequest
from octavo.core.hub.tokens import SERVICE, Tokens

TOKEN, OTHER = "hf_abcdefghijklmnop", "hf_qrstuvwxyz"


class MemoryKeyring(KeyringBackend):
    """A keyring in memory, which may be locked."""

    priority = 1  # type: ignore[assignment]
    name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if (service, username) not in self.kept:
            raise PasswordDeleteError("none")
        del self.kept[service, username]

    def _check(self) -> None:
        if self.is_locked:
            raise KeyringLocked("locked")


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    yield from _using(MemoryKeyring())


@pytest.fixture
def no_ring() -> Iterator[NoKeyring]:
    yield from _using(NoKeyring())


def _using(backend):  # type: ignore[no-untyped-def]
    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def tokens(folder: Path, **environ: str) -> Tokens:
    return Tokens(Home(folder / "home"), {"HOME": str(folder), **environ})


def test_a_token_is_kept_in_the_keyring(tmp_path: Path, ring: MemoryKeyring) -> None:
    mine = tokens(tmp_path)
    assert mine.current() is None and mine.where().source == "none"
    place = mine.keep(f" {TOKEN}\n")
    assert (place.source, place.place) == ("keyring", "memory")
    assert ring.kept == {(SERVICE, str(tmp_path / "home")): TOKEN}
    assert mine.current() == TOKEN and not (tmp_path / "home" / "hub-token").exists()
    assert mine.forget().source == "none" and ring.kept == {}


def test_without_a_keyring_a_private_file_keeps_it(tmp_path: Path, no_ring: NoKeyring) -> None:
    mine = tokens(tmp_path)
    place = mine.keep(TOKEN)
    file = tmp_path / "home" / "hub-token"
    assert (place.source, place.place) == ("file", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tokens(tmp_path).current() == TOKEN
    assert mine.forget().source == "none" and not file.exists()
    assert mine.forget().source == "none"


def test_a_locked_keyring_is_none(tmp_path: Path, ring: MemoryKeyring) -> None:
    ring.is_locked = True
    assert tokens(tmp_path).keep(TOKEN).source == "file"
    ring.is_locked = False
    assert tokens(tmp_path).keep(OTHER).source == "keyring"
    assert tokens(tmp_path).current() == OTHER and not (tmp_path / "home" / "hub-token").exists()


def test_the_environment_comes_first_and_hugging_faces_own_file_last(
    tmp_path: Path, ring: MemoryKeyring
) -> None:
    theirs = tmp_path / "hf" / "token"
    theirs.parent.mkdir()
    theirs.write_text(f"{OTHER}\n")
    environ = {"HF_HOME": str(theirs.parent)}
    assert tokens(tmp_path, **environ).current() == OTHER
    assert tokens(tmp_path, **environ).where().place == str(theirs)
    assert tokens(tmp_path, **environ, HF_HUB_DISABLE_IMPLICIT_TOKEN="1").current() is None
    mine = tokens(tmp_path, **environ)
    mine.keep(TOKEN)
    assert mine.current() == TOKEN
    assert tokens(tmp_path, **environ, HF_TOKEN="hf_env").current() == "hf_env"
    assert mine.forget().source == "hugging_face" and theirs.read_text() == f"{OTHER}\n"


@pytest.mark.parametrize("text", ["", "  ", "two words", "hf_\u00e9", "x" * 513, "a\nb", "nul\0"])
def test_what_is_no_token_is_refused(tmp_path: Path, ring: MemoryKeyring, text: str) -> None:
    with pytest.raises(InvalidRequest):
        tokens(tmp_path).keep(text)
    assert ring.kept == {}


def test_a_token_is_told_nobody(tmp_path: Path, no_ring: NoKeyring, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    mine = tokens(tmp_path)
    mine.keep(TOKEN)
    with pytest.raises(InvalidRequest) as fault:
        mine.keep(f"{TOKEN} {TOKEN}")
    told = [repr(mine), repr(mine.where()), str(fault.value), repr(fault.value.details), caplog.text]
    assert not any(TOKEN in text for text in told)
