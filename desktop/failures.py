"""Errors in the person's language: the service tells a code and an English sentence."""

from pathlib import PurePath

from PySide6.QtCore import QCoreApplication, QLocale

from octavo.core.errors import ErrorReport


def sentence(report: ErrorReport) -> str:
    """Say what happened: in English as the service said it, else by the code, where it is known."""
    if QLocale().language() == QLocale.Language.English:
        return report.message
    return _known().get(_key(report)) or report.message


def advice(report: ErrorReport) -> str:
    """Say what to do, where the service said it in the person's language."""
    if QLocale().language() == QLocale.Language.English or _key(report) not in _known():
        return report.hint
    return ""


def facts(report: ErrorReport) -> str:
    """Give what the sentence leaves out: file name, the service's own words under a translation."""
    said = sentence(report)
    own = report.message if report.message != said else ""
    path = report.details.get("path")
    name = PurePath(path).name if isinstance(path, str) else ""
    if not name or name in said or name in own:
        return own
    return f"{name}: {own}" if own else name


def told(report: ErrorReport) -> str:
    """Say what happened and its facts in one line."""
    return f"{sentence(report)} {facts(report)}".strip()


def _key(report: ErrorReport) -> str:
    return "service_ended" if "ended_while" in report.details else report.code


def _known() -> dict[str, str]:
    translate = QCoreApplication.translate
    return {
        "context_length_exceeded": translate(
            "Failures", "The conversation is longer than the model's context."
        ),
        "model_not_found": translate("Failures", "There is no such model in the library."),
        "chat_not_found": translate("Failures", "This chat is no longer there."),
        "invalid_gguf": translate("Failures", "The file is not a sound GGUF model."),
        "unreadable_file": translate("Failures", "The file can't be read."),
        "target_exists": translate("Failures", "There is already a file where this one should go."),
        "instance_busy": translate("Failures", "The model is answering and can't be unloaded now."),
        "load_failed": translate("Failures", "The engine refused the model."),
        "wrong_cpu_build": translate("Failures", "The engine was built for another processor."),
        "insufficient_memory": translate("Failures", "There isn't enough free memory for the model."),
        "decode_failed": translate("Failures", "The engine could not go on with the answer."),
        "worker_crashed": translate(
            "Failures", "The model's process ended by itself. It starts again with the next question."
        ),
        "queue_full": translate("Failures", "Too many requests are waiting."),
        "service_unavailable": translate("Failures", "Octavo's service doesn't answer."),
        "service_ended": translate(
            "Failures", "Octavo's service ended unexpectedly while this was written. The text so far is kept."
        ),
        "model_unloaded": translate("Failures", "The model was unloaded while it answered."),
        "storage_failed": translate("Failures", "A file can't be written; the disk may be full."),
        "template_refused": translate("Failures", "The model's chat template could not be used."),
        "conflict": translate("Failures", "That isn't possible at the moment."),
        "internal_error": translate("Failures", "Something unexpected happened."),
    }
