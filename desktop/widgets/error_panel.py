"""An error in place: what happened, why, what to do, and the details folded."""

from PySide6.QtCore import QEvent, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPainterPath, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from octavo.core.errors import Detail, ErrorReport
from octavo.desktop.failures import advice, facts, sentence
from octavo.desktop.theme.icons import icon, picture
from octavo.desktop.theme.look import colour
from octavo.desktop.widgets.buttons import button, caption_button
from octavo.desktop.widgets.labels import label

EDGE = 3
MOST_LINES = 12


class ErrorPanel(QFrame):
    """Shows an ``ErrorReport``; ``retry_wanted`` is sent by its one button, where it has one."""

    retry_wanted = Signal()

    def __init__(self, can_retry: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._title_given = ""
        self._report = ErrorReport("", "")
        self._sign = QLabel()
        self._title = label(size="reading", weight=600)
        self._message = _wrapped("secondary")
        self._facts = _wrapped("muted")
        self._hint = _wrapped("text")
        self._retry = button("normal", "refresh-cw")
        self._retry.setVisible(can_retry)
        self._fold = button("text")
        self._copy = caption_button("copy")
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setProperty("text_size", "code_small")
        self._box = QFrame()
        self._lay_out()
        self._details.document().documentLayout().documentSizeChanged.connect(self._on_details_laid_out)
        self._retry.clicked.connect(self.retry_wanted)
        self._fold.clicked.connect(self._on_fold_clicked)
        self._copy.clicked.connect(self._on_copy_clicked)
        self._unfold(False)
        self.retranslate()

    def show_report(self, report: ErrorReport, title: str = "") -> None:
        """Show an error, under a title of one's own where what was tried says more than the code."""
        self._report, self._title_given = report, title
        self._details.setPlainText(_details(report))
        self.retranslate()

    def allow_retry(self, allowed: bool) -> None:
        """Show or hide the button."""
        self._retry.setVisible(allowed)

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._title.setText(self._title_given or self.tr("That didn't work"))
        self.setAccessibleName(self._title.text())
        self._message.setText(sentence(self._report))
        self._facts.setText(facts(self._report))
        self._hint.setText(advice(self._report))
        for part in (self._facts, self._hint):
            part.setVisible(bool(part.text()))
        self._retry.setText(self.tr("Try again"))
        self._fold.setText(self.tr("Details"))
        self._copy.describe(self.tr("Copy the details"))
        self._details.setAccessibleName(self.tr("Details"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language and the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        elif event.type() == QEvent.Type.PaletteChange and hasattr(self, "_sign"):
            self._sign.setPixmap(picture("octagon-alert", "bad", 20, self.devicePixelRatioF()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the details the height that they need at the new width."""
        super().resizeEvent(event)
        QTimer.singleShot(0, self, self._on_details_laid_out)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the red line on top, inside the rounded corners."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rounded = QPainterPath()
        rounded.addRoundedRect(QRectF(self.rect()), 8, 8)
        painter.setClipPath(rounded)
        painter.fillRect(0, 0, self.width(), EDGE, colour("bad"))

    def _lay_out(self) -> None:
        self._sign.setPixmap(picture("octagon-alert", "bad", 20, self.devicePixelRatioF()))
        self._box.setProperty("kind", "code")
        inside = QHBoxLayout(self._box)
        inside.setContentsMargins(8, 6, 4, 6)
        inside.setSpacing(4)
        inside.addWidget(self._details, 1)
        inside.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignTop)
        actions = QHBoxLayout()
        actions.setSpacing(8)
        actions.addWidget(self._retry)
        actions.addWidget(self._fold)
        actions.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(8)
        for part in (self._title, self._message, self._facts, self._hint):
            column.addWidget(part)
        column.addLayout(actions)
        column.addWidget(self._box)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 16, 20, 16)
        row.setSpacing(12)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(column, 1)

    def _unfold(self, open_now: bool) -> None:
        self._box.setVisible(open_now)
        self._fold.setIcon(icon("chevron-down" if open_now else "chevron-right", "accent_text"))

    @Slot()
    def _on_details_laid_out(self) -> None:
        lines = max(1, round(self._details.document().size().height()))
        shown = min(MOST_LINES, lines)
        as_needed, off = Qt.ScrollBarPolicy.ScrollBarAsNeeded, Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self._details.setVerticalScrollBarPolicy(off if shown == lines else as_needed)
        self._details.setFixedHeight(shown * self._details.fontMetrics().lineSpacing() + 12)

    @Slot()
    def _on_fold_clicked(self) -> None:
        self._unfold(not self._box.isVisibleTo(self))
        QTimer.singleShot(0, self, self._on_details_laid_out)

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(_details(self._report))


def _wrapped(tone: str) -> QLabel:
    made = label(tone=tone)
    made.setWordWrap(True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def _details(report: ErrorReport) -> str:
    rows: list[tuple[str, Detail]] = [
        ("code", report.code),
        ("message", report.message),
        *report.details.items(),
    ]
    wide = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:<{wide}}{_value(value)}" for name, value in rows)


def _value(value: Detail) -> str:
    return "\n".join(value) if isinstance(value, list) else str(value)
