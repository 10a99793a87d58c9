"""What the window knows of the service: models, what is loaded, the public port."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from octavo.core.errors import ErrorReport
from octavo.core.events import (
    AnyEvent,
    FiguresSampled,
    InstanceFigures,
    InstanceStatus,
    LoadEnded,
    LoadProgressed,
    LoadStarted,
    ServerChanged,
    WorkerDied,
)
from octavo.desktop.bridge import Bridge
from octavo.desktop.remembered import Remembered
from octavo.desktop.values import (
    Connection,
    InstancesListed,
    ModelEntry,
    ModelsListed,
    ServerRead,
    WishFailed,
)


class Studio(QObject):
    """The present state, kept from the bridge's news; views read it and hear when a part of it changed."""

    connection_changed = Signal()
    models_changed = Signal()
    current_changed = Signal()
    figures_changed = Signal()
    server_changed = Signal()
    load_failed = Signal(str, object)

    def __init__(self, bridge: Bridge, remembered: Remembered, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.bridge = bridge
        self.remembered = remembered
        self.connection = Connection("connecting")
        self.models: tuple[ModelEntry, ...] = ()
        self.instances: dict[str, InstanceStatus] = {}
        self.figures: FiguresSampled | None = None
        self.server = ServerRead(False, "127.0.0.1", 0)
        self.lost_port: ServerRead | None = None
        self.port_error: ErrorReport | None = None
        self.current = remembered.text("model")
        self.is_listed = False
        self._ejected = False
        bridge.connection_changed.connect(self._on_connection_changed)
        bridge.models_listed.connect(self._on_models_listed)
        bridge.model_added.connect(self.choose_model)
        bridge.instances_listed.connect(self._on_instances_listed)
        bridge.server_read.connect(self._on_server_read)
        bridge.event_arrived.connect(self._on_event_arrived)
        bridge.wish_failed.connect(self._on_wish_failed)

    # ---- what is

    @property
    def is_connected(self) -> bool:
        """Say whether the service answers."""
        return self.connection.state == "connected"

    @property
    def entry(self) -> ModelEntry | None:
        """Give the model that the next message goes to."""
        return self.entry_of(self.current)

    @property
    def instance(self) -> InstanceStatus | None:
        """Give the loaded or loading instance of the current model."""
        return self.instance_of(self.current)

    def entry_of(self, key: str) -> ModelEntry | None:
        """Give the library's entry of a model."""
        return next((entry for entry in self.models if entry.key == key), None)

    def instance_of(self, key: str) -> InstanceStatus | None:
        """Give an instance of a model; a ready one first."""
        found = [status for status in self.instances.values() if status.model == key]
        return next((status for status in found if status.state == "ready"), found[0] if found else None)

    def figures_of(self, key: str) -> InstanceFigures | None:
        """Give the last sample of a model."""
        samples = self.figures.instances if self.figures is not None else []
        return next((sample for sample in samples if sample.model == key), None)

    # ---- wishes

    @Slot(str)
    def choose_model(self, key: str) -> None:
        """Make a model the current one and load it."""
        self._set_current(key)
        self._ejected = False
        if self.instance is None or self.instance.state == "crashed":
            self.bridge.load_model(key)

    def eject(self) -> None:
        """Unload the current model."""
        if self.instance is not None:
            self._ejected = True
            self.bridge.unload_instance(self.instance.instance)

    def add_model(self, path: Path) -> None:
        """Take a file into the library."""
        self.bridge.import_model(path)

    def switch_server(self) -> None:
        """Open the public port, or close it."""
        self.bridge.switch_server(not self.server.is_on)

    @Slot()
    def reopen_port(self) -> None:
        """Open the public port again where a lost service had it open."""
        self.port_error = None
        if self.lost_port is not None:
            self.bridge.reopen_server(self.lost_port.host, self.lost_port.port)
        self.server_changed.emit()

    @Slot()
    def forget_port(self) -> None:
        """Leave the public port closed."""
        self.lost_port = self.port_error = None
        self.server_changed.emit()

    # ---- news

    @Slot(Connection)
    def _on_connection_changed(self, connection: Connection) -> None:
        self.connection = connection
        if connection.state == "lost":
            self.instances, self.figures = {}, None
            self._lose_port()
            self.figures_changed.emit()
            self.server_changed.emit()
        elif connection.state == "connected":
            self._settle()
            self.reopen_port()
        self.connection_changed.emit()
        self.current_changed.emit()

    @Slot(ModelsListed)
    def _on_models_listed(self, listed: ModelsListed) -> None:
        had_none = not self.models
        self.models, self.is_listed = listed.models, True
        if had_none and self.is_connected:
            self._settle()
        self.models_changed.emit()
        self.current_changed.emit()

    @Slot(InstancesListed)
    def _on_instances_listed(self, listed: InstancesListed) -> None:
        self.instances = {status.instance: status for status in listed.instances}
        self.models_changed.emit()
        self.current_changed.emit()

    @Slot(ServerRead)
    def _on_server_read(self, server: ServerRead) -> None:
        self.server = server
        if server.is_on:
            self.lost_port = self.port_error = None
        self.server_changed.emit()

    @Slot(object)
    def _on_event_arrived(self, event: AnyEvent) -> None:
        match event:
            case FiguresSampled():
                self.figures = event
                self.figures_changed.emit()
            case LoadStarted(instance=instance, model=model):
                self._load_moved(instance, model, 0.0)
            case LoadProgressed(instance=instance, model=model, share=share):
                self._load_moved(instance, model, share)
            case LoadEnded(model=model, error=error) | WorkerDied(model=model, error=error):
                self._load_ended(model, error)
            case ServerChanged(is_on=is_on, host=host, port=port):
                self._on_server_read(ServerRead(is_on, host, port))

    @Slot(WishFailed)
    def _on_wish_failed(self, failed: WishFailed) -> None:
        if failed.wish == "load":
            self._load_ended(failed.subject, failed.error)
        elif failed.wish == "reopen" and failed.error.code != "service_unavailable":
            self.port_error = failed.error
            self.server_changed.emit()

    def _lose_port(self) -> None:
        """Note where the port was open; a service that is started anew doesn't know."""
        if self.server.is_on:
            self.lost_port = self.server
        self.port_error = None
        self.server = ServerRead(False, self.server.host, self.server.port)

    def _load_moved(self, instance: str, model: str, share: float) -> None:
        status = InstanceStatus(instance=instance, model=model, state="loading", share=share)
        self.instances[instance] = status
        self.models_changed.emit()
        self.current_changed.emit()

    def _load_ended(self, model: str, error: ErrorReport) -> None:
        if error.code not in ("cancelled", "service_unavailable"):
            self.load_failed.emit(model, error)

    def _settle(self) -> None:
        """Decide on the current model where none is known, and have it loaded where nothing is."""
        usable = [entry.key for entry in self.models if not entry.fault]
        loaded = [status.model for status in self.instances.values() if status.model in usable]
        if self.current not in usable:
            self._set_current(next(iter([*loaded, *usable]), ""))
        if self.current and self.instance is None and not self._ejected:
            self.bridge.load_model(self.current)

    def _set_current(self, key: str) -> None:
        if key != self.current:
            self.current = key
            self.remembered.keep("model", key)
            self.current_changed.emit()
