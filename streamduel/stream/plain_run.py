"""Runs of plain records: duels and finished impressions that are applied together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamduel.records import Interleaving, Rejected
from streamduel.stream.dedupe import record_key
from streamduel.stream.examples import NO_DOCS

if TYPE_CHECKING:
    from streamduel.connector import LogRecord
    from streamduel.stream.experiment import Experiment
    from streamduel.stream.stream_time import StreamClock

RUN: Final = 256
"""Records that are decoded together: few enough that a record that must be applied alone costs
little, and enough that the fixed work of each run does not matter."""


class PlainRun(NamedTuple):
    """Records that are all plain duels of an experiment, or all its finished impressions.

    Attributes:
        codes: of their duels.
        times: their timestamps.
        moves: the indexes of the records with which stream time advances to their timestamps.
        keys: of their ids.
        advances: for `DedupeWindow.add_new`.
    """

    codes: list[int]
    times: list[int]
    moves: list[int]
    keys: list[int]
    advances: list[tuple[int, int, int]]


def plain_run(
    experiment: Experiment, records: Sequence[LogRecord], events: Sequence[Any], clock: StreamClock
) -> PlainRun | None:
    """What records have in common that can be applied together; None if they cannot.

    Args:
        experiment: of the first event.
        records: at least one.
        events: theirs, or exceptions of decoding.
        clock: stream time before the first record.
    """
    codes = _codes(experiment, events)
    if codes is None:
        return None
    times: list[Any] = [record.timestamp for record in records]
    if None in times:
        pairs = zip(times, events, strict=True)
        times = [event.ts if time is None else time for time, event in pairs]
        if None in times:
            return None
    moves = clock.advances(times)
    if moves is None:
        return None
    keys = [record_key(event.id, experiment.seed) for event in events]
    advances = [(index, times[index], records[index].offset) for index in moves]
    return PlainRun(codes, times, moves, keys, advances)


def _codes(experiment: Experiment, events: Sequence[Any]) -> list[int] | None:
    """The codes of events that are all plain duels of an experiment, or all finished impressions.

    None if they are not, or if one does not become a duel.
    """
    (firsts, seconds, winners), name = experiment.coder.plain, experiment.name
    try:
        if type(events[0]) is Interleaving and firsts:
            code, kind = experiment.coder.code, Interleaving
            codes = [
                code(it)
                for it in events
                if type(it) is kind and it.experiment == name
                # Else it may be an example.
                if it.docs is None or it.query is None or it.docs == NO_DOCS
            ]
        else:
            codes = [
                firsts[it.a] + seconds[it.b] + winners[it.winner]
                for it in events
                if it.experiment == name
            ]
    except (AttributeError, KeyError, Rejected):  # other types have no `winner`
        return None
    return codes if len(codes) == len(events) and min(codes) >= 0 else None
