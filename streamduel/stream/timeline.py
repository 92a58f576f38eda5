"""The timeline: what happened to an experiment, a bounded number of moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from streamduel.preference.elimination import condorcet_winner_possible
from streamduel.preference.evidence import confidence
from streamduel.preference.verdict import LEVEL
from streamduel.record_rules import ACTION_FIELDS
from streamduel.records import Action, Control
from streamduel.stream.tallies import Count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streamduel.stream.decisions import Decisions
    from streamduel.stream.plan import Plan

MAX_MOMENTS: Final = 100
"""Moments that are kept: some 10 kB of a snapshot at most, without notes."""

MAX_CHAMPIONS: Final = 20
"""Changes of the champion that are kept. While arms are about equal, there is one after every few
duels, and they must not replace control actions."""

LEVELS: Final = (0.9, 0.95, 0.99)
"""Confidences whose first crossing by a champion is a moment."""

_CLAIM: Final = frozenset({"arms", "policy"})
"""Settings that change of what a champion is confident; the others leave the evidence as it is."""

_CHECK_AGAIN: Final = 20
"""After n duels, confidence is computed again n/20 duels later."""

MAX_ALARMS: Final = 20
"""Alarms that are kept: one may come and go."""

Event = Literal["started", "champion", "confidence", "finished", "running", "alarm"] | Action


class Moment(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that happened to an experiment.

    `event` is a control action, or `started`, `champion` (another one), `confidence` (a champion
    has reached 0.9, 0.95 or 0.99 for the first time), `finished`, `running` (again), or `alarm`
    (something is wrong with the data). `at` is stream time in milliseconds, `duels` the number of
    duels then. `text` is the arm, the pair, the level, the names of the settings, the note, or what
    is wrong; `actor` is the actor of the control record. `no_winner` is whether surely no arm beat
    all others when exploration was `finished`.
    """

    at: Count
    duels: Count
    event: Event
    text: str | None = None
    actor: str | None = None
    no_winner: bool = False


def ended_without_winner(moments: Sequence[Moment]) -> bool:
    """Whether surely no arm beat all others when exploration ended; later duels may deny it."""
    told = (it for it in reversed(moments) if it.event in {"finished", "running"})
    newest = next(told, None)
    return newest is not None and newest.no_winner


class TimelineState(msgspec.Struct):
    """What restores a `Timeline`.

    Attributes:
        moments: the oldest first.
        level: the largest of `LEVELS` that the present champion has reached; 0 for none.
        check_at: the number of duels at which confidence and alarms are computed next.
        alarms: what was wrong at the last check.
    """

    moments: list[Moment] = []
    level: float = 0.0
    check_at: Count = 0
    alarms: list[str] = []


class Timeline:
    """The moments of one experiment; the oldest are forgotten, changes of champion first.

    No decision uses it.

    Args:
        state: a former `state()`; None for a new experiment, or one of an older release.
    """

    __slots__ = ("_state",)

    def __init__(self, state: Any = None) -> None:
        self._state = msgspec.convert(state or {}, TimelineState)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The oldest first."""
        return tuple(self._state.moments)

    def acted(self, control: Control, duels: int, now: int) -> None:
        """A control record has taken effect."""
        fields = [getattr(control, name) for name in ACTION_FIELDS[control.action]]
        if control.action == "add_arm" and control.like is not None:
            fields.append(f"like {control.like}")
        parts = [", ".join(sorted(it)) if isinstance(it, dict) else str(it) for it in fields]
        self._add(Moment(now, duels, control.action, " / ".join(parts) or None, control.actor))
        if control.action in {"reset", "add_arm", "retire_arm", "apply"}:
            self._state.check_at = 0
            if control.action != "apply" or not _CLAIM.isdisjoint(control.settings or ()):
                self._state.level = 0.0

    def decided(
        self,
        before: Plan | None,
        decisions: Decisions,
        now: int,
        alarms: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """A decision has been taken.

        Args:
            before: the plan until then.
            decisions: with the present plan.
            now: stream time.
            alarms: returns what is wrong with the data.
        """
        plan, policy, state = decisions.plan, decisions.policy, self._state
        if plan is None:
            return
        if before is None:
            self._add(Moment(now, policy.duels, "started"))
            return
        if plan.champion != before.champion:
            state.level = 0.0
            state.check_at = min(state.check_at, policy.duels)
            self._add(Moment(now, policy.duels, "champion", plan.champion))
        was = before.status if before.status != "paused" else self._status_before_pause()
        if plan.status not in (was, "paused"):
            event: Event = "finished" if plan.status == "finished" else "running"
            delta = 1 - policy.parameters.get("confidence", LEVEL)
            none = event == "finished" and not condorcet_winner_possible(policy.wins, delta)
            self._add(Moment(now, policy.duels, event, plan.champion, no_winner=none))
            state.check_at = min(state.check_at, policy.duels)  # the confidence with which it ended
        if policy.duels >= state.check_at:
            state.check_at = policy.duels + 1 + policy.duels // _CHECK_AGAIN
            sure = confidence(policy.wins, policy.champion(), policy.seeks)
            reached = max((level for level in LEVELS if sure >= level), default=0.0)
            # The evidence is that of the policy's champion, which a plan in force may not name yet.
            if reached > state.level and plan.champion == decisions.champion:
                state.level = reached
                self._add(Moment(now, policy.duels, "confidence", f"{reached:.0%} {plan.champion}"))
            wrong = list(alarms())
            for text in wrong:
                if text not in state.alarms:
                    self._add(Moment(now, policy.duels, "alarm", text))
            state.alarms = wrong

    def _status_before_pause(self) -> Event:
        """The status that was told last: exploration may end, or go on, when a pause ends."""
        told = (it.event for it in reversed(self._state.moments))
        return next((event for event in told if event in {"finished", "running"}), "running")

    def _add(self, moment: Moment) -> None:
        moments = self._state.moments
        moments.append(moment)
        champions, alarms = (
            [at for at, it in enumerate(moments) if it.event == event]
            for event in ("champion", "alarm")
        )
        if len(alarms) > MAX_ALARMS:
            del moments[alarms[0]]
        elif len(champions) > MAX_CHAMPIONS or (len(moments) > MAX_MOMENTS and champions):
            del moments[champions[0]]
        elif len(moments) > MAX_MOMENTS:
            del moments[0]

    def state(self) -> dict[str, Any]:
        """What restores the object, as plain JSON values."""
        saved: dict[str, Any] = msgspec.to_builtins(self._state)
        return saved
