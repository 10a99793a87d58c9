"""Icons: Lucide drawings (ISC licence), tinted by role at the moment they are painted."""

from functools import lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from octavo.desktop.theme.look import colour


class TintedIcon(QIconEngine):
    """Draws one icon in the colour that its role has when it is painted: a new theme needs no new icon."""

    def __init__(self, name: str, role: str, checked_role: str) -> None:
        super().__init__()
        self._name = name
        self._role = role
        self._checked_role = checked_role

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        """Paint into ``rect``, in the device's own pixels."""
        device = painter.device()
        ratio = device.devicePixelRatio() if device is not None else 1.0
        painter.drawPixmap(rect.topLeft(), self._drawn(rect.size(), mode, state, ratio))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        """Give the icon as a picture of ``size`` pixels."""
        return self._drawn(size, mode, state, 1.0)

    def scaledPixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float) -> QPixmap:
        """Give the icon for a screen of another density; ``size`` is in device pixels."""
        return self._drawn(size, mode, state, 1.0)

    def clone(self) -> QIconEngine:
        """Copy the engine, as QIcon asks for when it detaches."""
        return TintedIcon(self._name, self._role, self._checked_role)

    def _drawn(self, size: QSize, mode: QIcon.Mode, state: QIcon.State, ratio: float) -> QPixmap:
        role = self._checked_role if state == QIcon.State.On else self._role
        is_disabled = mode == QIcon.Mode.Disabled
        side = min(size.width(), size.height())
        role = "muted" if is_disabled else role
        drawn = picture(self._name, role, side, ratio, 0.6 if is_disabled else 1.0)
        return drawn if size.width() == side else _with_gap(drawn, size, ratio)


def icon(name: str, role: str = "secondary", checked_role: str = "accent_text") -> QIcon:
    """Give a Lucide icon in the colour of ``role``; ``checked_role`` is used while its button is checked."""
    return QIcon(TintedIcon(name, role, checked_role))


def picture(name: str, role: str, side: int, ratio: float = 1.0, opacity: float = 1.0) -> QPixmap:
    """Draw an icon of ``side`` logical pixels in the present colour of ``role``."""
    return _rendered(name, colour(role).name(), max(1, round(side * ratio)), side, ratio, opacity)


def paint_icon(painter: QPainter, name: str, role: str, at: QPoint, side: int) -> None:
    """Paint an icon at a point of a widget that draws itself."""
    device = painter.device()
    ratio = device.devicePixelRatio() if device is not None else 1.0
    painter.drawPixmap(at, picture(name, role, side, ratio))


def _with_gap(drawn: QPixmap, size: QSize, ratio: float) -> QPixmap:
    """Put an icon at the left of a wider picture: the gap before a button's text."""
    wide = QPixmap(size * ratio)
    wide.setDevicePixelRatio(ratio)
    wide.fill(Qt.GlobalColor.transparent)
    painter = QPainter(wide)
    painter.drawPixmap(0, 0, drawn)
    painter.end()
    return wide


@lru_cache(maxsize=64)
def _drawing(name: str) -> str:
    return files("octavo.resources").joinpath(f"icons/{name}.svg").read_text("utf-8")


@lru_cache(maxsize=512)
def _rendered(name: str, tint: str, pixels: int, side: int, ratio: float, opacity: float) -> QPixmap:
    width = "1.6" if side >= 20 else "1.75"
    text = _drawing(name).replace("currentColor", tint).replace('stroke-width="2"', f'stroke-width="{width}"')
    drawn = QPixmap(pixels, pixels)
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    painter.setOpacity(opacity)
    QSvgRenderer(QByteArray(text.encode())).render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    drawn.setDevicePixelRatio(ratio)
    return drawn
