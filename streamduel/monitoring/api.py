"""The JSON that the monitoring port answers with; each answer's form is in `answers`."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from starlette.responses import JSONResponse, Response

from streamduel.monitoring.answers import HistoryAnswer, HistoryPoint, MatrixAnswer
from streamduel.monitoring.history import History, regret_kind
from streamduel.monitoring.page.heat_map import ranking
from streamduel.monitoring.page.pages import absent
from streamduel.monitoring.views import ExperimentView, Figures

MOST_ARMS: Final = 100
"""Of a matrix: 10,000 numbers, some 60 kB. `streamduel inspect --json` has it whole."""


def experiments(figures: Figures, name: str | None) -> Response:
    """Those that this process holds, by name; or the one that is asked for.

    Each is encoded once after a change, however many ask, and in a step of its own: a thousand of
    them never keep the fold waiting for longer than one.
    """
    views = {view.name: view for view in figures.experiments()}
    if name is not None and name not in views:
        return _refusal(figures, name)
    wanted = sorted(views) if name is None else [name]
    answer = {"experiments": {each: views[each].summary for each in wanted}}
    return _json(answer)


def history(figures: Figures, past: History, name: str) -> Response:
    """The trail of an experiment."""
    view = _find(figures, name)
    if view is None:
        return _refusal(figures, name)
    points = [HistoryPoint(point.at, int(point.duels), *point[2:]) for point in past.upto(view)]
    return _json(HistoryAnswer(name, past.since, regret_kind(view), points))


def matrix(figures: Figures, name: str) -> Response:
    """The counts of an experiment."""
    view = _find(figures, name)
    if view is None:
        return _refusal(figures, name)
    shown = ranking(view)[:MOST_ARMS]
    arms = [view.arms[arm] for arm in shown]
    wins = view.wins[np.ix_(shown, shown)].tolist()
    return _json(MatrixAnswer(name, len(view.arms), arms, wins))


def _find(figures: Figures, name: str) -> ExperimentView | None:
    return next((view for view in figures.experiments() if view.name == name), None)


def _refusal(figures: Figures, name: str) -> Response:
    return JSONResponse({"error": absent(figures, name)}, status_code=404)


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
