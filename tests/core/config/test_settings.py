"""Preferences survive what happens to files."""

import os
from pathlib import Path

import pytest

from octavo.core.config.paths import SOCKET_PATH_LIMIT, Home, home
from octavo.core.config.settings import Settings, SettingsFile, write_atomically
from octavo.core.errors import InvalidConfig, StorageFailed


def test_a_change_is_there_after_a_restart(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.toml")
    file.change("server", port=4321)
    file.change("loading", defaults={"context": 4096}, models={"a/b": {"kv_k": "q8_0"}})
    again = SettingsFile(tmp_path / "settings.toml").current
    assert again.server.port == 4321
    assert again.loading.models == {"a/b": {"kv_k": "q8_0"}}


@pytest.mark.parametrize("damage", [b"port = [", b"\xff\xfe", b'[server]\nport = "x"', b"[nonsense]\na = 1"])
def test_a_damaged_file_is_set_aside_and_the_defaults_apply(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(damage)
    file = SettingsFile(path)
    assert file.current == Settings()
    assert file.set_aside is not None
    assert file.set_aside.read_bytes() == damage
    assert not path.exists()


@pytest.mark.parametrize(
    ("group", "values"), [("server", {"port": 70000}), ("server", {"no": 1}), ("no", {})]
)
def test_a_bad_value_changes_nothing(tmp_path: Path, group: str, values: dict[str, object]) -> None:
    file = SettingsFile(tmp_path / "settings.toml")
    with pytest.raises(InvalidConfig):
        file.change(group, **values)
    assert file.current == Settings()
    assert not (tmp_path / "settings.toml").exists()


def test_a_failed_write_keeps_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFailed, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_long_home_gets_a_short_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = Home(tmp_path / ("x" * 120))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert len(os.fsencode(long.control_socket)) <= SOCKET_PATH_LIMIT
    assert long.control_socket != Home(tmp_path / ("y" * 120)).control_socket


def test_the_environment_names_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path / "é ñ 漢字"))
    place = home()
    place.prepare()
    assert place.run.stat().st_mode & 0o777 == 0o700
    assert place.models.is_dir()


@pytest.mark.parametrize("below", ["file", "file/deeper"])
def test_a_home_that_cannot_be_is_told_by_its_variable(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path / below))
    for act in (home().check, home().prepare):
        with pytest.raises(StorageFailed, match="OCTAVO_HOME names"):
            act()


def test_looking_whether_a_home_can_be_makes_none(tmp_path: Path) -> None:
    Home(tmp_path / "a/b").check()
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("loading", {"defaults": {"context": "x"}}),
        ("loading", {"models": {"a/b": {"no_such_setting": 1}}}),
        ("library", {"folders": ["relative"]}),
        ("library", {"folders": ["/"]}),
        ("library", {"folders": ["/a\0b"]}),
    ],
)
def test_what_could_never_be_used_is_refused(tmp_path: Path, group: str, values: dict[str, object]) -> None:
    file = SettingsFile(tmp_path / "settings.toml")
    with pytest.raises(InvalidConfig):
        file.change(group, **values)
    assert not (tmp_path / "settings.toml").exists()


def test_a_default_that_is_unsaid_is_left_out(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.toml")
    file.change("loading", defaults={"context": None, "slots": 2})
    assert SettingsFile(tmp_path / "settings.toml").current.loading.defaults == {"slots": 2}
