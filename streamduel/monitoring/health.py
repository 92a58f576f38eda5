"""Liveness and readiness, with the reasons when the answer is no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamduel.monitoring.views import Figures

SILENT_SECONDS: Final = 60.0
"""The loop turns several times a second; a commit to a broker that hesitates may hold it up for
some 15 seconds. After 60 the Kafka group has given the partitions to others (the connector's
`max_poll_interval_ms`), so that to be restarted costs nothing more."""


def why_not_live(figures: Figures) -> Sequence[str]:
    """Why only a restart will help; nothing while the runner's loop goes round."""
    silent = figures.now - figures.turned_at
    if silent <= SILENT_SECONDS:
        return ()
    return (
        f"the loop has not turned for {silent:.0f} s; at most {SILENT_SECONDS:.0f} s are allowed.",
    )


def why_not_ready(figures: Figures) -> Sequence[str]:
    """Why no records are folded; nothing if they are, or would be if there were any.

    An experiment with a fallback must have records, too.
    """
    reasons = list(why_not_live(figures))
    if not figures.connected:
        reasons.append("the source's log cannot be reached.")
    if figures.fenced:
        reasons.append("a commit was refused; going back to the last one that was not.")
    elif not figures.partitions:
        reasons.append(
            "no partition is restored: none is assigned to this process, or its snapshot is "
            "being read."
        )
    for view in figures.experiments():
        if view.fallback is not None:
            arm, allowed = view.fallback
            idle = figures.now - view.changed_at
            if idle > allowed:
                reasons.append(
                    f"no record of experiment '{view.name}' has come for {idle:.0f} s, where "
                    f"{allowed:g} s are allowed; ranker services are told to serve '{arm}' alone."
                )
    return reasons
