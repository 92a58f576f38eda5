"""The logging of this process: set up once, by whoever owns the process."""

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

from streamduel.logging.forms import OWN, Form, beginning, ending
from streamduel.logging.repeats import Repeats
from streamduel.logging.secrets import Secrets, secrets_of

log = structlog.stdlib.get_logger(__name__)

OWN_LEVELS: Final[dict[Form, tuple[int, ...]]] = {
    "text": (logging.WARNING, logging.INFO, logging.DEBUG),
    "json": (logging.INFO, logging.DEBUG),
}
"""From which level on our lines are written, without -v, with one, with two. On a terminal somebody
looks on and asked for something else; what programs collect should have what happened."""

OTHER_LEVELS: Final = (logging.WARNING, logging.WARNING, logging.INFO, logging.DEBUG)
"""The same for libraries: kafka-python tells at INFO of every connection, at DEBUG of every
request."""

CHATTERBOX: Final = "kafka.net.selector"
"""The logger of kafka-python's event loop, which warns whenever one of its steps takes 0.1 s: on a
busy machine that is news of the machine, to those who ask with -vv only."""

_SECRETS: Final = Secrets()


class _Lines(logging.StreamHandler[TextIO]):
    """Writes to what is standard error at the time: a progress bar puts itself in between."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Nothing: the base class sets it once, and it is not kept."""


def set_up(form: Form, verbosity: int = 0) -> None:
    """Log to standard error from now on, instead of what was set up before.

    Args:
        form: of the lines.
        verbosity: how many times -v was given.
    """
    start = beginning(form)
    structlog.configure(
        processors=[filter_by_level, *start, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # or the first form would stay that of known loggers
    )
    lines = _Lines()
    lines.addFilter(Repeats(f"{OWN}."))
    lines.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=start,
            processors=[
                _repeated,
                structlog.processors.format_exc_info,
                _SECRETS,
                ProcessorFormatter.remove_processors_meta,
                *ending(form, sys.stderr),
            ],
        )
    )
    root = logging.getLogger()
    for former in [each for each in root.handlers if isinstance(each, _Lines)]:
        root.removeHandler(former)
    root.addHandler(lines)
    root.setLevel(_at(OTHER_LEVELS, verbosity))
    quiet = root.level >= logging.WARNING
    logging.getLogger(CHATTERBOX).setLevel(logging.ERROR if quiet else logging.NOTSET)
    for package in (OWN, f"{OWN}_files", f"{OWN}_kafka"):
        logging.getLogger(package).setLevel(_at(OWN_LEVELS[form], verbosity))


def hide(*settings: BaseModel) -> None:
    """Keep the secrets of these settings out of every line from now on."""
    _SECRETS.add(secrets_of(settings))


def hidden(text: str) -> str:
    """The text without the secrets that are known by now, for what is shown in other ways."""
    return _SECRETS.hidden(text)


def take_over() -> None:
    """Make lines of Python's warnings, and of what nobody catches, too; for a whole service."""
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
    """Say how many lines like this one were held back before it."""
    if count := getattr(line["_record"], "repeated", 0):
        line["repeated"] = count
    return line


def _at(levels: tuple[int, ...], verbosity: int) -> int:
    return levels[min(verbosity, len(levels) - 1)]
