"""Control actions: what each of them changes in an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from streamduel.config.changes import MAX_PLAN_BYTES, batch_bytes
from streamduel.records import Control, Rejected
from streamduel.stream import settings_change

if TYPE_CHECKING:
    from streamduel.stream.experiment import Experiment


def apply(control: Control, experiment: Experiment, offset: int) -> None:
    """Apply a control record; the experiment then takes a decision.

    `record_rules.ACTION_FIELDS` has the fields that each action needs.

    Args:
        control: a record that obeys the rules.
        experiment: it has learned all duels before the record.
        offset: the record's.

    Raises:
        Rejected: the action is impossible; nothing has changed.
    """
    decisions, roster = experiment.decisions, experiment.roster
    match control.action:
        case "pause":
            decisions.paused = True
        case "resume":
            decisions.paused = False
        case "freeze_pair":
            decisions.guardrails.frozen = roster.pair(str(control.a), str(control.b))
        case "unfreeze_pair":
            decisions.guardrails.frozen = None
        case "reset":
            decisions.reset()
            experiment.duels.reset(experiment.settings)
            experiment.impressions.reset(experiment.settings)
        case "add_arm":
            _add_arm(experiment, str(control.arm), control.like, offset)
        case "retire_arm":
            _retire_arm(experiment, str(control.arm), offset)
        case "apply":
            settings_change.apply(experiment, control.settings or {}, offset)
        case "note":
            pass  # for the timeline
        case _:
            assert_never(control.action)


def _add_arm(experiment: Experiment, arm: str, like: str | None, offset: int) -> None:
    roster = experiment.roster
    roster.check_new(arm)
    if like is not None and like not in roster.index:
        raise roster.unknown(like)
    if experiment.duels.segments and not experiment.duels.segments.has_room:
        raise Rejected(
            "invalid_record",
            f"arm '{arm[:80]}' cannot be added: there are too many segments for one more arm.",
        )
    if batch_bytes(experiment.settings, [*roster.arms, arm]) > MAX_PLAN_BYTES:
        raise Rejected(
            "invalid_record",
            f"arm '{arm[:80]}' cannot be added: the plan of a batched policy lists all pairs of"
            f" arms, and would be too large.",
        )
    experiment.decisions.add_arm(arm, None if like is None else roster.index[like])
    settings_change.join(experiment, arm, offset)
    experiment.coder.renumber()


def _retire_arm(experiment: Experiment, arm: str, offset: int) -> None:
    index = experiment.roster.check_retirable(arm)
    experiment.decisions.retire_arm(arm, index)
    settings_change.leave(experiment, arm, offset)
    experiment.coder.renumber()
