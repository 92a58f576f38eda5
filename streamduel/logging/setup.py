"""Logging of this process; set up by the command line."""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType
from typing import Final, TextIO

import structlog
from pydantic import BaseModel
from structlog.stdlib import ProcessorFormatter, filter_by_level
from structlog.typing import EventDict, WrappedLogger

from streamduel.logging.rendering import OWN, LogFormat, first_processors, last_processors
from streamduel.logging.repeats import Repeats
from streamduel.logging.secrets import Secrets, secrets_of

log = structlog.stdlib.get_logger(__name__)

OWN_LEVELS: Final[dict[LogFormat, tuple[int, ...]]] = {
    "text": (logging.WARNING, logging.INFO, logging.DEBUG),
    "json": (logging.INFO, logging.DEBUG),
}
"""The level of our lines without -v, with one, with two. A terminal shows the output of a command;
collected logs should have every event."""

OTHER_LEVELS: Final = (logging.WARNING, logging.WARNING, logging.INFO, logging.DEBUG)
"""The same for libraries: kafka-python logs every connection at INFO, every request at DEBUG."""

NOISY_LOGGER: Final = "kafka.net.selector"
"""kafka-python's event loop warns when a step takes 0.1 s, which is normal on a busy machine; shown
with -vv only."""

CANCELLED: Final = "Cancelled"
"""kafka-python's error of a request that the close of its own client ended; it logs it as an
error."""

UNFINISHED: Final = "KafkaConnectionError"
"""The same of a connection that was not yet established. It has no arguments then; with any other
cause it has a message."""

CLOSED: Final = "kafka.net.transport"
"""kafka-python's logger of a socket that its own client closed while it was read: it logs the
traceback of an AttributeError, since the socket is None then."""

NO_DESCRIPTOR: Final = "Invalid file descriptor: -1"
"""The error of kafka-python's event loop for a socket that its own client closed before a task
waited for it."""

_SECRETS: Final = Secrets()


class _Lines(logging.StreamHandler[TextIO]):
    """Writes to the present standard error, which a progress bar may have replaced."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Ignore the stream that the base class sets once."""


def set_up(form: LogFormat, verbosity: int = 0) -> None:
    """Log to standard error, instead of any earlier set-up.

    Args:
        form: of the lines.
        verbosity: how many times -v was given.
    """
    first = first_processors(form)
    structlog.configure(
        processors=[filter_by_level, *first, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # known loggers must follow a later set-up
    )
    level = _at(OTHER_LEVELS, verbosity)
    quiet = level >= logging.WARNING
    lines = _Lines()
    if quiet:
        lines.addFilter(_not_closed)
    lines.addFilter(Repeats(f"{OWN}."))
    lines.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=first,
            processors=[
                _repeated,
                structlog.processors.format_exc_info,
                _SECRETS,
                ProcessorFormatter.remove_processors_meta,
                *last_processors(form, sys.stderr),
            ],
        )
    )
    root = logging.getLogger()
    for former in [each for each in root.handlers if isinstance(each, _Lines)]:
        root.removeHandler(former)
    root.addHandler(lines)
    root.setLevel(level)
    logging.getLogger(NOISY_LOGGER).setLevel(logging.ERROR if quiet else logging.NOTSET)
    for package in (OWN, f"{OWN}_files", f"{OWN}_kafka"):
        logging.getLogger(package).setLevel(_at(OWN_LEVELS[form], verbosity))


def hide(*settings: BaseModel) -> None:
    """Hide the secrets of these settings in every later line."""
    _SECRETS.add(secrets_of(settings))


def redact(text: str) -> str:
    """The text with the known secrets hidden, for output other than the application log."""
    return _SECRETS.redact(text)


def log_uncaught() -> None:
    """Log Python's warnings and uncaught exceptions, too; for a whole service."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _crashed
    threading.excepthook = _crashed_thread


def _crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("crashed", exc_info=(kind, error, trace))


def _crashed_thread(what: threading.ExceptHookArgs) -> None:
    if what.exc_type is not SystemExit and what.exc_value is not None:
        name = what.thread.name if what.thread else None
        error = (what.exc_type, what.exc_value, what.exc_traceback)
        log.critical("thread crashed", thread_name=name, exc_info=error)


def _repeated(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """Add how many similar lines were suppressed before this one."""
    if count := getattr(line["_record"], "repeated", 0):
        line["repeated"] = count
    return line


def _not_closed(record: logging.LogRecord) -> bool:
    """Whether a line is not about what kafka-python's client did when it was closed."""
    values = record.args if isinstance(record.args, tuple) else ()
    error = record.exc_info[1] if record.exc_info else None
    if record.name == CLOSED and isinstance(error, AttributeError):
        return False
    if record.name == NOISY_LOGGER and str(error) == NO_DESCRIPTOR:
        return False
    return not any(_of_close(each) for each in values)


def _of_close(value: object) -> bool:
    """Whether a value is the error with which kafka-python's close ends what is in progress."""
    name = type(value).__name__
    return name == CANCELLED or (name == UNFINISHED and not getattr(value, "args", ()))


def _at(levels: tuple[int, ...], verbosity: int) -> int:
    return levels[min(verbosity, len(levels) - 1)]
