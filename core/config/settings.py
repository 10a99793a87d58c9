"""The person's preferences, in ``settings.toml``."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tomlkit.exceptions import TOMLKitError

from octavo.core.config.addresses import PROXY_SETTING, check_endpoint, checked_proxy
from octavo.core.config.load_config import resolve
from octavo.core.errors import InvalidConfig, StorageFailed


class Group(BaseModel):
    """A section of the settings; unknown keys are kept out, so that a typo is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Appearance(Group):
    """What the window looks like."""

    theme: Literal["system", "dark", "light"] = Field("system", title="Theme")
    language: Literal["system", "en", "ko"] = Field("system", title="Language")


class Server(Group):
    """The public port that agents talk to."""

    enabled: bool = Field(False, title="Server on", description="Open the port when the app starts.")
    host: str = Field("127.0.0.1", title="Address", description="127.0.0.1 lets in this computer only.")
    port: int = Field(1234, ge=0, le=65535, title="Port")
    jit: bool = Field(True, title="Load on demand", description="A request for a model loads it.")
    ttl_s: float = Field(
        3600,
        ge=0,
        title="Unload after",
        description="Idle seconds until a model loaded on demand is unloaded; 0 keeps it.",
    )
    queue_limit: int = Field(
        64, ge=1, le=4096, title="Queue", description="Requests that may wait per model."
    )


class Library(Group):
    """Where models are looked for besides Octavo's own folder; these are read in place.

    Nothing is ever written to another program's folder; in one that the person named, nothing but the
    deletion of a model that is asked for.
    """

    folders: tuple[str, ...] = Field((), title="Model folders")
    lm_studio: bool = Field(True, title="LM Studio", description="Show the models of LM Studio.")
    hugging_face: bool = Field(
        True, title="Hugging Face", description="Show the models of the Hugging Face cache."
    )
    ollama: bool = Field(True, title="Ollama", description="Show the models of Ollama.")


class Loading(Group):
    """Global load settings; fields of ``LoadConfig`` that the person changed for all models."""

    defaults: dict[str, str | int | float | bool | None] = Field(default_factory=dict, title="Load defaults")
    models: dict[str, dict[str, str | int | float | bool | None]] = Field(
        default_factory=dict, title="Per-model defaults"
    )
    fast_refused: str = Field(
        "", title="Fast mode refused", description="Why weight repacking is off on this machine."
    )


class Memory(Group):
    """How much memory models may use. A GiB is 2^30 bytes."""

    keep_free_gib: float = Field(
        1.0, ge=0, le=4096, title="Keep free", description="GiB that models leave to everything else."
    )
    limit_gib: float = Field(
        0, ge=0, le=65536, title="Limit", description="GiB for all models together; 0 is no limit of its own."
    )
    enforce: bool = Field(
        True, title="Refuse what doesn't fit", description="A load that would not run is refused."
    )
    wait_s: float = Field(
        60, ge=0, le=3600, title="Wait for room", description="Seconds that a load waits for busy models."
    )


class Hub(Group):
    """How models are found and downloaded; the environment (HF_ENDPOINT, HTTPS_PROXY …) comes before it."""

    endpoint: str = Field(
        "https://huggingface.co",
        pattern=r"^https?://[^\s/]\S*$",
        title="Hub",
        description="Or a mirror of it.",
    )
    offline: bool = Field(False, title="Offline", description="Nothing is asked of the Hub.")
    proxy: str = Field("", pattern=r"^\S*$", title="Proxy", description="http://host:port; empty is none.")
    bytes_per_s: int = Field(
        0, ge=0, title="Limit", description="Bytes per second of all downloads together; 0 is no limit."
    )
    agents_may_download: bool = Field(
        False, title="Agents may download", description="Lets in downloads on the public port, too."
    )


class Settings(Group):
    """All preferences."""

    version: Literal[1] = 1
    appearance: Appearance = Appearance()
    server: Server = Server()
    library: Library = Library()
    loading: Loading = Loading()
    memory: Memory = Memory()
    hub: Hub = Hub()


class SettingsFile:
    """``settings.toml``: read once, replaced whole on each change (temp file, fsync, rename).

    A damaged file is set aside under another name and the defaults apply; ``set_aside`` then names it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set_aside: Path | None = None
        self.current = self._read()

    def change(self, group: str, **values: object) -> Settings:
        """Set fields of one group and write the file; raises ``InvalidConfig`` or ``StorageFailed``."""
        fields = self.current.model_dump()
        if group not in fields or not isinstance(fields[group], dict):
            raise InvalidConfig(f"There is no settings group named {group}.", field=group)
        fields[group] |= values
        try:
            changed = Settings.model_validate(fields)
        except ValidationError as fault:
            raise InvalidConfig(f"The setting can't be used: {_first_fault(fault)}.", field=group) from fault
        _check(group, changed)
        told = _without_none(changed.model_dump(mode="json"))
        write_atomically(self._path, tomlkit.dumps(told).encode())
        self.current = changed
        return changed

    def _read(self) -> Settings:
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return Settings()
        except (OSError, UnicodeDecodeError):
            return self._put_aside()
        try:
            return Settings.model_validate(tomlkit.parse(text).unwrap())
        except (TOMLKitError, ValidationError):
            return self._put_aside()

    def _put_aside(self) -> Settings:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        try:
            self._path.rename(aside)
        except OSError as fault:
            raise StorageFailed(
                f"{self._path} can't be read and can't be set aside: {fault}.", path=str(self._path)
            ) from fault
        self.set_aside = aside
        return Settings()


def _without_none(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out what isn't said: TOML has no word for it."""
    return {
        name: _without_none(item) if isinstance(item, dict) else item
        for name, item in value.items()
        if item is not None
    }


def _check(group: str, changed: Settings) -> None:
    """Refuse what could be written but never used; what a file already holds is left to where it is used.

    Raises ``InvalidConfig``.
    """
    if group == "loading":
        resolve(("setting", changed.loading.defaults))
        for defaults in changed.loading.models.values():
            resolve(("setting", defaults))
    if group == "hub":
        check_endpoint(changed.hub.endpoint)
        if changed.hub.proxy:
            checked_proxy(changed.hub.proxy, PROXY_SETTING)
    for folder in changed.library.folders if group == "library" else ():
        path = Path(folder).expanduser()
        if not path.is_absolute() or not folder.isprintable() or path == Path(path.anchor):
            raise InvalidConfig(
                f"{folder!r} can't be a model folder: name one by its whole path, and not a whole disk.",
                field="library.folders",
            )


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` so that a crash or a full disk leaves the old or the new file, whole."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as fault:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise StorageFailed(
            f"{path} could not be written: {fault.strerror or fault}.",
            hint="Free some space.",
            path=str(path),
        ) from fault


def _first_fault(fault: ValidationError) -> str:
    first = fault.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
