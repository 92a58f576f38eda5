"""The application log: one line per event, as text for people or as JSON for programs.

Modules log through structlog, with the event's name and its fields as keys; libraries log through
Python's own logging. This package renders both alike. docs/logging.md lists the events.
"""

from streamduel.logging.rendering import FormatOption, LogFormat, resolve_format
from streamduel.logging.setup import hide, log_uncaught, redact, set_up

__all__ = [
    "FormatOption", "LogFormat", "hide", "log_uncaught", "redact", "resolve_format", "set_up",
]  # fmt: skip
