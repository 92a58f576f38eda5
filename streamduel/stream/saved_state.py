"""The hard state of an experiment as a snapshot holds it: its check and its hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from streamduel.checksum import checksum
from streamduel.records import Assignment, Status
from streamduel.stream.client_sketch import ClientSketchState
from streamduel.stream.examples import ExamplesState
from streamduel.stream.plan import Plan
from streamduel.stream.segments import SegmentsState
from streamduel.stream.snapshot import canonical
from streamduel.stream.tallies import ArmCounts, Count, Outcomes, OutOfOrder, TieRow
from streamduel.stream.timeline import TimelineState

Arms = Annotated[list[str], Meta(min_length=2)]
Features = Annotated[list[int], Meta(min_length=6, max_length=6)]

UNHASHED: Final = frozenset(
    {"pair_ties", "timeline", "examples", "disorder", "clients", "unjudged"}
)
"""Parts of an experiment's state that decide nothing and are not in its hash."""


class _Batch(msgspec.Struct):
    opened_at: Count | None
    published_at: Count


class _Stop(msgspec.Struct):
    check_at: Count


class _Guardrails(msgspec.Struct):
    frozen: tuple[str, str] | None
    served: list[tuple[str, str, Count]]


class _Renewal(msgspec.Struct):
    published_at: Count | None
    records: Count
    expires: bool


class _Conformance(msgspec.Struct):
    sides: Features
    arms: dict[str, Features]
    unassigned: Count
    assigned: list[tuple[str, str, int, int]]
    pruned_at: Count


class _Unjudged(msgspec.Struct):
    sides: Features
    arms: dict[str, Features]


class _Policy(msgspec.Struct):
    policy: str
    n_arms: int


class _State(msgspec.Struct):
    """`Experiment.state()`; its other parts are checked where they are restored."""

    arms: Arms
    added: dict[str, int]
    retired: dict[str, int]
    status: Status
    plan: Plan | None
    assignment: Assignment | None
    since_decision: Count
    paused: bool
    stopped: bool
    batch: _Batch
    stop: _Stop
    guardrails: _Guardrails
    renewal: _Renewal
    policy: _Policy
    by_arm: ArmCounts
    tallies: Outcomes
    ties: Count
    trust: _Conformance
    open: dict[str, Count]
    pair_ties: list[TieRow] = []
    applied: dict[str, Any] = {}
    segments: SegmentsState | None = None
    timeline: TimelineState | None = None
    examples: ExamplesState | None = None
    disorder: OutOfOrder | None = None
    clients: ClientSketchState | None = None
    unjudged: _Unjudged | None = None


def check(name: str, state: Mapping[str, Any]) -> None:
    """Check the types of a state, and that its parts are about the same arms.

    Args:
        name: name of the experiment.
        state: a former `Experiment.state()`.

    Raises:
        ValidationError, ValueError: it cannot be such a state.
    """
    saved = msgspec.convert(state, _State)
    arms = set(saved.arms)
    numbers = {len(saved.arms), saved.policy.n_arms, len(saved.by_arm.alone)}
    if numbers != {len(arms)} or len(saved.by_arm.fought) != len(arms):
        raise ValueError("its parts have different numbers of arms")
    tied = [(first, second) for first, second, _ in saved.pair_ties]
    if tied != sorted(set(tied)) or not all(0 <= i < j < len(arms) for i, j in tied):
        raise ValueError("its ties are not of pairs of its arms, in ascending order")
    for duels in (saved.segments.duels if saved.segments else {}).values():
        for first, second, *_ in (row for rows in duels.values() for row in rows):
            if not 0 <= first < second < len(arms):
                raise ValueError("its segments have duels of no pair of its arms")
    named = set(saved.guardrails.frozen or ())
    if saved.examples is not None:
        named |= {*(saved.examples.leading or ())}
        named |= {arm for each in saved.examples.kept for arm in (each.a, each.b)}
    if saved.plan is not None:
        named |= {saved.plan.champion}
        named |= {arm for pair in saved.plan.pairs for arm in (pair.first, pair.second)}
        if not saved.plan.pairs or any(pair.weight < 1 for pair in saved.plan.pairs):
            raise ValueError("its plan has no pairs")
    if unknown := named - arms:
        raise ValueError(f"it names the unknown arm '{min(unknown)}'")
    if saved.assignment is not None and (
        saved.assignment.experiment != name or saved.assignment.epoch < 1
    ):
        raise ValueError("its last assignment is not the experiment's")


def state_hash(state: Mapping[str, Any]) -> str:
    """The hash of an experiment's hard state, equal on every machine.

    Records that only people are shown, and that earlier releases did not keep, are left out
    (`UNHASHED`): a replay of the whole click log then agrees with a state that one of them began.

    >>> state_hash({})
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    hashed = {part: value for part, value in state.items() if part not in UNHASHED}
    return checksum(canonical(hashed))
