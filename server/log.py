"""The service's own log file: rotated, and never with a key in it."""

import logging
import logging.handlers
import re
from pathlib import Path

LOG_BYTES = 2 * 1024 * 1024
LOG_FILES = 3

_SECRET = re.compile(r"(?i)(bearer\s+|x-api-key['\": ]+)[\w.~+/=-]+")


class Redaction(logging.Filter):
    """Takes keys out of every line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line if it holds a key."""
        text = record.getMessage()
        if _SECRET.search(text):
            record.msg, record.args = _SECRET.sub(r"\1…", text), None
        return True


def log_to(folder: Path) -> None:
    """Send all log lines of this process to ``service.log`` in this folder."""
    handler = logging.handlers.RotatingFileHandler(
        folder / "service.log", maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
    )
    handler.addFilter(Redaction())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
