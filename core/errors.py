"""The one error tree: every failure that a person or a client can meet.

    OctavoError                       500 internal_error
    ├── InvalidRequest                400 invalid_request
    │   ├── ContextLengthExceeded     400 context_length_exceeded
    │   ├── InvalidConfig             400 invalid_config
    │   ├── TemplateRefused           400 template_refused
    │   └── AmbiguousModel            400 ambiguous_model
    ├── RequestTooLarge               413 request_too_large
    ├── Unauthorized                  401 unauthorized
    ├── Forbidden                     403 forbidden
    ├── NotFound                      404 not_found
    │   ├── ModelNotFound             404 model_not_found
    │   └── ChatNotFound              404 chat_not_found
    ├── MethodNotAllowed              405 method_not_allowed
    ├── Conflict                      409 conflict
    │   ├── TargetExists              409 target_exists
    │   ├── ForeignFile               409 foreign_file
    │   └── InstanceBusy              409 instance_busy
    ├── UnreadableFile                422 unreadable_file
    │   ├── FolderNotFound            422 folder_not_found
    │   └── InvalidGguf               422 invalid_gguf
    ├── Cancelled                     499 cancelled
    ├── LoadFailed                    500 load_failed
    │   ├── WrongCpuBuild             500 wrong_cpu_build
    │   └── InsufficientMemory        503 insufficient_memory
    ├── DecodeFailed                  500 decode_failed
    ├── WorkerCrashed                 502 worker_crashed
    ├── QueueFull                     503 queue_full
    ├── ModelWasUnloaded              503 model_unloaded
    ├── ServiceUnavailable            503 service_unavailable
    └── StorageFailed                 507 storage_failed

``message`` says what happened and why, ``hint`` what to do; ``details`` carries the figures. An error crosses
a process border as an ``ErrorReport`` and comes out on the other side as the same class with the same words.
"""

from typing import ClassVar

import msgspec

Detail = str | int | float | bool | None | list[str]


class ErrorReport(msgspec.Struct, frozen=True):
    """An error as data: what crosses pipes, sockets and event streams."""

    code: str
    message: str
    hint: str = ""
    details: dict[str, Detail] = {}


class OctavoError(Exception):
    """A failure with a stable code, an HTTP status and words for a person."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    kind: ClassVar[str] = "server_error"

    def __init__(self, message: str, *, hint: str = "", **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        ends = self.message.rstrip().endswith((".", "!", "?", "…"))
        return f"{self.message}{'' if ends or not self.hint else '.'} {self.hint}".rstrip()

    def report(self) -> ErrorReport:
        """Give the error as data."""
        return ErrorReport(self.code, self.message, self.hint, self.details)


class InvalidRequest(OctavoError):
    """The request can't be carried out as it was written."""

    code = "invalid_request"
    status = 400
    kind = "invalid_request_error"


class ContextLengthExceeded(InvalidRequest):
    """The prompt doesn't fit the context; details: ``n_prompt_tokens``, ``n_ctx``."""

    code = "context_length_exceeded"
    kind = "exceed_context_size_error"


class InvalidConfig(InvalidRequest):
    """Load settings or preferences that contradict each other or can't work here."""

    code = "invalid_config"


class TemplateRefused(InvalidRequest):
    """The model's chat template failed, did something forbidden, or ran out of time or memory."""

    code = "template_refused"


class AmbiguousModel(InvalidRequest):
    """A short model name that fits several models; details: ``candidates``."""

    code = "ambiguous_model"


class RequestTooLarge(OctavoError):
    """The body is over the limit."""

    code = "request_too_large"
    status = 413
    kind = "invalid_request_error"


class Unauthorized(OctavoError):
    """No key, or a wrong one."""

    code = "unauthorized"
    status = 401
    kind = "authentication_error"


class Forbidden(OctavoError):
    """The Host or Origin header is not one that this server answers."""

    code = "forbidden"
    status = 403
    kind = "permission_error"


class NotFound(OctavoError):
    """No such route or thing."""

    code = "not_found"
    status = 404
    kind = "not_found_error"


class ModelNotFound(NotFound):
    """No model of that name; details: ``candidates`` (near matches)."""

    code = "model_not_found"
    kind = "invalid_request_error"


class ChatNotFound(NotFound):
    """No conversation or reply of that id."""

    code = "chat_not_found"


class MethodNotAllowed(OctavoError):
    """The route exists, the method doesn't."""

    code = "method_not_allowed"
    status = 405
    kind = "invalid_request_error"


class Conflict(OctavoError):
    """The thing is in a state that forbids this."""

    code = "conflict"
    status = 409
    kind = "invalid_request_error"


class TargetExists(Conflict):
    """A file is already where this one should go; details: ``path``."""

    code = "target_exists"


class InstanceBusy(Conflict):
    """The model is answering and may not be unloaded now."""

    code = "instance_busy"


class PagesArePinned(Conflict):
    """Pages that are kept in memory can't be dropped; details: ``model``."""

    code = "pages_are_pinned"


class SnapshotNotKept(NotFound):
    """That snapshot of a residency map is older than ten minutes, or never was; details: ``generation``."""

    code = "snapshot_not_kept"


class NoPageControl(Conflict):
    """The pages of this model can't be warmed, dropped or pinned here: no mapping, or not this system."""

    code = "no_page_control"


class HubUnreachable(OctavoError):
    """The Hub can't be reached, or not now; details: ``endpoint``, ``retry_after_s``."""

    code = "hub_unreachable"
    status = 503
    kind = "server_error"


class HubOffline(HubUnreachable):
    """The Hub was not asked, because the person, or HF_HUB_OFFLINE, says that we are offline."""

    code = "hub_offline"


class HubRateLimited(HubUnreachable):
    """The Hub asks for a pause; details: ``retry_after_s``."""

    code = "hub_rate_limited"
    status = 429


class HubRefused(OctavoError):
    """The Hub wants a token, another one, or its terms accepted first; details: ``repo``, ``url``."""

    code = "hub_refused"
    status = 403
    kind = "permission_error"


class GatedRepository(HubRefused):
    """The terms of a repository must be accepted on its page, and a token given."""

    code = "gated_repository"


class RepositoryNotFound(NotFound):
    """No such repository, or a private one that the token does not open; details: ``repo``."""

    code = "repository_not_found"


class HubFileNotFound(NotFound):
    """The repository has no such file or choice; details: ``repo``, ``candidates``."""

    code = "hub_file_not_found"


class DownloadNotFound(NotFound):
    """There is no download of that id."""

    code = "download_not_found"


class DownloadFailed(OctavoError):
    """What came is not what was announced; details: ``repo``, ``file``."""

    code = "download_failed"
    status = 502
    kind = "server_error"


class ChecksumMismatch(DownloadFailed):
    """All bytes came, but their SHA-256 is not the published one; they were deleted."""

    code = "checksum_mismatch"


class FileChangedOnHub(DownloadFailed):
    """The file on the Hub is not the one that the download began with."""

    code = "file_changed_on_hub"


class AlreadyDownloading(Conflict):
    """Another process of this machine writes that very file; details: ``path``."""

    code = "already_downloading"


class UnreadableFile(OctavoError):
    """A file that can't be opened or read; details: ``path``."""

    code = "unreadable_file"
    status = 422
    kind = "invalid_request_error"


class InvalidGguf(UnreadableFile):
    """A file that is no sound GGUF; details: ``path``, ``fault``, ``offset`` (bytes)."""

    code = "invalid_gguf"


class FolderNotFound(UnreadableFile):
    """The folder that holds a model isn't there: unplugged, renamed, or a drive that doesn't answer."""

    code = "folder_not_found"


class ForeignFile(Conflict):
    """The file belongs to another program and is only read; details: ``path``, ``owner``."""

    code = "foreign_file"


class Cancelled(OctavoError):
    """The person or client who asked for it called it off."""

    code = "cancelled"
    status = 499
    kind = "cancelled"


class LoadFailed(OctavoError):
    """llama.cpp refused the model; details: ``log`` (its last lines)."""

    code = "load_failed"


class WrongCpuBuild(LoadFailed):
    """The engine uses instructions that this processor doesn't allow (SIGILL)."""

    code = "wrong_cpu_build"


class InsufficientMemory(LoadFailed):
    """The model doesn't fit; details: ``needed_bytes``, ``budget_bytes``, ``available_bytes``."""

    code = "insufficient_memory"
    status = 503


class DecodeFailed(OctavoError):
    """llama.cpp could not decode a batch; only the requests in that batch are lost."""

    code = "decode_failed"


class WorkerCrashed(OctavoError):
    """The worker process ended by itself; details: ``signal``, ``exit_code``, ``model``."""

    code = "worker_crashed"
    status = 502


class QueueFull(OctavoError):
    """Too many requests wait; details: ``retry_after_s``."""

    code = "queue_full"
    status = 503


class ModelWasUnloaded(OctavoError):
    """The model was unloaded while it answered; details: ``model``."""

    code = "model_unloaded"
    status = 503


class ServiceUnavailable(OctavoError):
    """No service answers, or it is stopping."""

    code = "service_unavailable"
    status = 503


class StorageFailed(OctavoError):
    """The disk is full, or a file of ours can't be written; details: ``path``."""

    code = "storage_failed"
    status = 507


def _family(kind: type[OctavoError]) -> dict[str, type[OctavoError]]:
    known = {kind.code: kind}
    for child in kind.__subclasses__():
        known |= _family(child)
    return known


def from_report(report: ErrorReport) -> OctavoError:
    """Make the error that ``report`` tells of; an unknown code becomes a plain ``OctavoError``."""
    kind = _family(OctavoError).get(report.code, OctavoError)
    return kind(report.message, hint=report.hint, **report.details)
