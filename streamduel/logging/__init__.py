"""How the process logs: one line per event, as text for people or as JSON for programs.

Whoever has something to tell asks structlog for a logger and names the event, with what belongs to
it as keys; the libraries log through Python's own logging. Here both become lines of the same form.
docs/logging.md lists the events.
"""

from streamduel.logging.forms import Chosen, Form, chosen
from streamduel.logging.process import hidden, hide, set_up, take_over

__all__ = ["Chosen", "Form", "chosen", "hidden", "hide", "set_up", "take_over"]
