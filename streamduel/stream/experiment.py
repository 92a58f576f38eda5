"""One experiment of the fold: its hard state, and how a record changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import structs

from streamduel.config.changes import changed
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import LogRecord
from streamduel.policies import Policy
from streamduel.records import (
    Assignment,
    Click,
    Control,
    Duel,
    Duels,
    Impression,
    InputEvent,
    Interleaving,
    Rejected,
)
from streamduel.stream import control
from streamduel.stream.alarms import alarms
from streamduel.stream.attribution import Attribution, Closed
from streamduel.stream.client_cap import ClientCap
from streamduel.stream.coding import NO_DUEL, Coder
from streamduel.stream.decisions import Decisions
from streamduel.stream.dedupe import record_key
from streamduel.stream.duel_buffer import DuelBuffer
from streamduel.stream.examples import NO_DOCS
from streamduel.stream.impressions import Impressions
from streamduel.stream.partition_context import WINDOWS_PER_HEARTBEAT, PartitionContext
from streamduel.stream.plan import Plan
from streamduel.stream.roster import Roster
from streamduel.stream.tallies import DuelCounts, Outcomes, OutOfOrder
from streamduel.stream.timeline import Timeline


class Experiment:
    """Turns credited records into duels, reports them to the policy, and lets it decide.

    Args:
        name: name of the experiment.
        settings: those with which it began.
        context: what it shares with the other experiments of its partition.
        seed: of its record keys in the dedupe window.
        started_at: the offset of the first record that can belong to it.
        state: a former `state()`; None for a new experiment.

    Attributes:
        begun: the settings with which it began.
        gaps: the offsets from and until which it was not configured.
        applied: new values of settings by key, from control records.
        settings: those in force.
        configured: its section of the configuration, which may differ.
        buffer: the duels that the policy has not learned yet.
        coder: codes of duels, for the present arms.
        attribution: open impressions and pending clicks.
        client_cap: decides which records exceed the cap of their client; None without a cap.
        decisions: policy, plan and assignments.
        out_of_order: the clicks that the order of the click log has cost.
        outcomes: the number of records by outcome.
        duels: the duels by arm, pair and segment.
        impressions: statistics and examples of its impressions.
        saved_open: `open` of the snapshot while a restart rebuilds it; None otherwise.
        timeline: what happened to the experiment.
    """

    __slots__ = (
        "_changes", "_context", "applied", "attribution", "begun", "buffer", "client_cap", "coder",
        "configured", "decisions", "duels", "gaps", "impressions", "name", "out_of_order",
        "outcomes", "roster", "saved_open", "seed", "settings", "started_at", "timeline",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: ExperimentSettings,
        context: PartitionContext,
        seed: int,
        started_at: int,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.begun, self._context = name, settings, context
        saved = state or {}
        self.applied: dict[str, Any] = saved.get("applied", {})
        self.settings = settings = changed(settings, self.applied) if self.applied else settings
        self.configured = settings
        self.seed, self.started_at = seed, started_at
        self.gaps: list[tuple[int, int]] = []
        self._changes = 0
        self.saved_open: dict[str, int] | None = saved.get("open")
        most = settings.max_per_client
        self.client_cap = None if most is None else ClientCap(most, seed, context.client_duels)
        arms = saved.get("arms", settings.arms)
        self.roster = Roster(name, arms, saved.get("added"), saved.get("retired"))
        self.outcomes = msgspec.convert(saved.get("tallies", {}), Outcomes)
        self.duels = DuelCounts(settings, len(self.roster.arms), state)
        window_ms, patterns = settings.join_window(context.join_window_ms), context.team_patterns
        self.attribution = Attribution(
            window_ms, context.window, name, context.memory, patterns, self.duels.segments_of
        )
        self.out_of_order = msgspec.convert(saved.get("disorder", {}), OutOfOrder)
        if state is None:  # else a restart re-reads clicks that are counted already
            self.attribution.out_of_order = self.out_of_order
        self.timeline = Timeline(saved.get("timeline"))
        self.impressions = Impressions(settings, context, state)
        self.decisions = Decisions(name, settings, context.partition, self.roster, state)
        self.coder = Coder(settings, self.roster, context.limits)
        self.buffer = DuelBuffer(self.coder, self.decisions, self.duels, self.outcomes)

    def apply(self, event: InputEvent, code: int, key: int, record: LogRecord, now: int) -> None:
        """Apply an event that is not a duplicate.

        Args:
            event: the event.
            code: its code.
            key: its id's, in the dedupe window.
            record: its record.
            now: stream time.

        Raises:
            Rejected: a control record or a click cannot be applied; nothing has changed.
        """
        self._HANDLERS[type(event)](self, event, code, key, record, now)

    def cap(self, event: InputEvent, key: int, record: LogRecord, now: int) -> None:
        """Count an event, no duplicate, that exceeds the cap of its client; see `apply`."""
        if isinstance(event, Impression):
            self._impression(event, NO_DUEL, key, record, now, capped=True)
        else:
            self.outcomes.capped += 1

    def _duel(self, event: Duel, code: int, _key: int, record: LogRecord, now: int) -> None:
        if event.client is not None:
            self.impressions.clients.add(event.client)
        self._add_duel(event, code, record, now)

    def _add_duel(self, event: Duel | Interleaving, code: int, record: LogRecord, now: int) -> None:
        """Buffer the duel that a record has become, if it counts as one."""
        if code < 0:
            self.outcomes.accepted += 1
            self.duels.ties += 1
            return
        if event.segment is not None:
            self.duels.in_segments(self.duels.segments_of(event.segment), code)
        self.buffer.codes.append(code)
        if len(self.buffer.codes) >= self.buffer.due:
            self.decide_if_due(record.offset, now)

    def _interleaving(
        self, event: Interleaving, code: int, _key: int, record: LogRecord, now: int
    ) -> None:
        self.impressions.count(event, now)
        if event.docs is not None and event.query is not None and event.docs != NO_DOCS:
            self._show(event, record.offset)
            self.impressions.examples.decide(event, event.clicks, code, record.offset, now)
        self._add_duel(event, code, record, now)

    def _duels(self, event: Duels, _code: int, _key: int, record: LogRecord, now: int) -> None:
        first, second = self.roster.index[event.a], self.roster.index[event.b]
        ties = event.ties if self.settings.ties == "half" else 0
        self.buffer.learn_counts(event, first, second, ties)
        if self.buffer.due <= 0:
            self.decide(record.offset, now)

    def _show(self, event: Impression | Interleaving, offset: int) -> None:
        """Offer an impression as an example."""
        examples = self.impressions.examples
        if examples.due(self.policy.duels + len(self.buffer)):
            self.buffer.learn()
            if self.decisions.plan is not None:
                champion = self.decisions.plan.champion
                examples.lead(self.policy, champion, self.roster.arms, offset)
        examples.show(event, offset)

    def _impression(
        self, event: Impression, _code: int, key: int, record: LogRecord, now: int,
        *, capped: bool = False,
    ) -> None:  # fmt: skip
        self.close_windows(record.offset, record.offset, now)
        idle = not self.attribution
        if capped:
            self.outcomes.capped += 1
        else:
            self.outcomes.accepted += 1
            self.impressions.count(event, now)
            if event.docs is not None and event.query is not None:
                self._show(event, record.offset)
        opened = self.attribution.open(key, event, record.offset, now, capped=capped)
        for click, verdict in opened:
            if verdict is None:
                self.outcomes.accepted += 1
            else:
                self.reject(click, verdict)
        if idle:
            self.set_timer()

    def _click(self, event: Click, _code: int, _key: int, record: LogRecord, now: int) -> None:
        self.close_windows(record.offset, record.offset, now)
        idle = not self.attribution
        impression = record_key(event.impression, self.seed)
        joined = self.attribution.click(impression, event, record, now)
        if joined == "joined":
            self.outcomes.accepted += 1
        elif joined == "late":
            self.outcomes.late += 1
        elif joined == "displacing":
            self.outcomes.unjoined += 1
        if idle:
            self.set_timer()

    def _control(self, event: Control, _code: int, _key: int, record: LogRecord, now: int) -> None:
        self._context.heartbeat()  # before and after a change of settings, which may take long
        self.buffer.learn()
        control.apply(event, self, record.offset)
        self.outcomes.accepted += 1
        self._context.outputs.act(event)
        self.timeline.acted(event, self.policy.duels, now)
        if event.action != "note":
            self.decide(record.offset, now)

    _HANDLERS: ClassVar[dict[type, Callable[..., None]]] = {
        Duel: _duel,
        Duels: _duels,
        Interleaving: _interleaving,
        Impression: _impression,
        Click: _click,
        Control: _control,
    }

    def reject(self, record: LogRecord, verdict: Rejected) -> None:
        """Make a dead letter of one of the experiment's records."""
        self.outcomes.dead_letter += 1
        self._context.outputs.reject(record, verdict, self.name)

    # Join windows.

    def close_windows(self, until: int, offset: int, now: int) -> None:
        """Close join windows, credit their impressions, and decide whenever a decision is due.

        Args:
            until: the record whose arrival ends windows by number of records; 0 for none. Windows
                end that way only when a part of an impression arrives, which recovery reads again,
                and not when time passes.
            offset: the last record that a decision takes into account.
            now: stream time.
        """
        self._credit_closed(self.attribution.close(until, now), offset, now)

    def evict(self, offset: int, now: int) -> None:
        """Close the join windows for which the partition has no memory left."""
        self._credit_closed(self.attribution.evict(), offset, now)

    def _credit_closed(self, closed: Closed, offset: int, now: int) -> None:
        self.outcomes.unjoined += closed.unjoined
        self._changes += closed.unjoined + len(closed.impressions)
        index, examples = self.roster.index, self.impressions.examples
        for number, impression in enumerate(closed.impressions):
            if number % WINDOWS_PER_HEARTBEAT == WINDOWS_PER_HEARTBEAT - 1:
                self._context.heartbeat()
            code = NO_DUEL if impression.capped else self.coder.closed(impression)
            if examples.waiting:
                at, clicks = impression.opened_at, impression.clicks
                examples.decide(impression, clicks, code, impression.offset, at)
            if code >= 0:
                if impression.segments and impression.offset >= self.duels.segments.since:
                    self.duels.in_segments(impression.segments, code)
                self.buffer.codes.append(code)
                self.buffer.counted += 1
            elif not impression.capped and {impression.a, impression.b} <= index.keys():
                self.duels.ties += 1
            if len(self.buffer.codes) >= self.buffer.due:
                self.decide_if_due(offset, now)

    def leave(self) -> None:
        """Forget what is open: the experiment is not configured any more."""
        self._changes += 1 + self.attribution.pending
        self.attribution.clear()
        self.impressions.examples.waiting.clear()

    # Decisions.

    def decide_if_due(self, offset: int, now: int) -> None:
        """Take a decision when the buffer holds `due` duels, if learning them leaves it due.

        A batch may still lack duels of one pair, because there are too many of another. Without
        this check, a decision would depend on when the duels were learned, so on the commits.
        """
        self.buffer.learn()
        if self.buffer.due <= 0:
            self.decide(offset, now)

    def decide(self, offset: int, now: int) -> None:
        """Take a decision from all duels so far, and publish it if it changes the plan.

        Args:
            offset: the last record that it takes into account.
            now: stream time.
        """
        self.buffer.learn()
        before = self.decisions.plan
        self._decided(before, self.decisions.decide(offset, now, self.records), now)

    def expire(self, offset: int, now: int) -> None:
        """Do what is due because stream time has reached `timer`.

        Args:
            offset: the last record before.
            now: stream time.
        """
        self.close_windows(0, offset, now)
        if self.timer <= now:
            self._changes += 1
            self.buffer.learn()
            before = self.decisions.plan
            self._decided(before, self.decisions.expire(offset, now, self.records), now)
        self.set_timer()

    def retime(self, since: int, now: int) -> None:
        """Date impressions and clicks that arrived at or after an offset, or later than `now`."""
        self.attribution.retime(since, now)
        self.set_timer()

    def rewind(self, offset: int, now: int) -> None:
        """Stream time was set back to `now`, before the record after `offset`."""
        self._changes += 1
        self.buffer.learn()
        self.impressions.conformance.rewind(now)
        plan = self.decisions.plan
        self._decided(plan, self.decisions.rewind(offset, now, self.records), now)

    def _decided(self, before: Plan | None, assignment: Assignment | None, now: int) -> None:
        self._context.heartbeat()  # among a thousand arms a decision may take half a second
        self.buffer.refresh_due()
        plan = self.decisions.plan
        if plan is not None and plan != before:
            self.impressions.conformance.decided(before, plan, self.decisions.epoch, now)
        self.timeline.decided(before, self.decisions, now, lambda: alarms(self))
        if assignment is not None:
            self._context.outputs.assign(assignment)
        self.set_timer()

    @property
    def timer(self) -> int:
        """The stream time at which `expire` is due."""
        return min(self.decisions.timer, self.attribution.timer)

    def set_timer(self) -> None:
        """Set the experiment's timer to `timer`."""
        self._context.timers.set(self.name, self.timer)

    # State.

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.decisions.policy

    @property
    def version(self) -> int:
        """The number of changes of the hard state; equal numbers, equal states."""
        pending = self.attribution.pending  # as rebuilt: `records` decreases if some were deleted
        return self.outcomes.total + self.buffer.uncounted + pending + self._changes

    @property
    def records(self) -> int:
        """The number of records so far, whatever their outcome, pending clicks included."""
        return self.outcomes.total + self.buffer.uncounted + self.open["clicks"]

    @property
    def tallies(self) -> dict[str, int]:
        """The number of records by outcome."""
        return structs.asdict(self.outcomes)

    @property
    def open(self) -> dict[str, int]:
        """The number of open impressions and of pending clicks, after the last record folded."""
        rebuilt = {"impressions": len(self.attribution), "clicks": self.attribution.pending}
        return rebuilt if self.saved_open is None else self.saved_open

    def state(self) -> dict[str, Any]:
        """The hard state as plain JSON values; `Experiment(…, state=…)` restores it exactly."""
        self.buffer.learn()
        return {
            **({"applied": self.applied} if self.applied else {}),
            **self.roster.state(),
            **self.decisions.state(),
            **self.duels.state(),
            "tallies": self.outcomes.state(capped=self.client_cap is not None),
            **self.impressions.state(),
            "timeline": self.timeline.state(),
            **self.out_of_order.state(),
            "open": self.open,
        }
