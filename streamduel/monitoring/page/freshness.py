"""How long ago the last record of an experiment came."""

from __future__ import annotations

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.page.wording import span
from streamduel.monitoring.views import ExperimentView


def last_record(view: ExperimentView, figures: Figures) -> str:
    """In words; when the records before the process's start came is not known.

    Args:
        view: the experiment.
        figures: what is known of everything.
    """
    if not any(view.tallies.values()):
        return "none yet"
    if not view.active:
        return "none since the restart"
    return f"{span(max(0.0, figures.now - view.last_record_at))} ago"
