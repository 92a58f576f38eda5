"""The control action `apply`: a running experiment continues with other settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streamduel.config import changes as rules
from streamduel.config.experiment import MIN_ARMS, ExperimentSettings
from streamduel.errors import ConfigurationError, PolicyError
from streamduel.formats.reading import read_value
from streamduel.records import Rejected
from streamduel.stream.roster import Roster

if TYPE_CHECKING:
    from streamduel.stream.experiment import Experiment


MAX_BYTES: Final = 2**18
"""JSON of the values in one record: more would hold up the fold for more than 0.1 s."""


def apply(experiment: Experiment, values: Mapping[str, msgspec.Raw], offset: int) -> None:
    """Give an experiment other settings, all of them or none.

    Counts, tallies and epoch are kept. A policy with another name or other parameters starts from
    the counts. Settings of credit hold for records and join windows that are credited from here on.

    Args:
        experiment: it has learned all duels before the record.
        values: new values of some keys, as JSON.
        offset: the record's.

    Raises:
        Rejected: a value is not allowed, or the experiment cannot take it; nothing has changed.
    """
    before, roster = experiment.settings, experiment.roster
    try:
        changes = _decoded(values)
        after = rules.changed(before, changes)
        arms = roster.arms
        if "arms" in changes:
            arms = _arms(roster, after.arms)
            after = after.model_copy(update={"arms": _listed(roster, before.arms, after.arms)})
        rules.check_change(before, after, arms)
        _check_frozen(experiment, before, after, arms)
        experiment.decisions.configure(after, arms)
    except (ConfigurationError, PolicyError) as error:
        raise Rejected("invalid_record", f"the settings cannot be applied: {error}") from None
    for arm in [arm for arm in roster.arms if arm not in arms]:
        leave(experiment, arm, offset)
    for arm in arms[len(roster.arms) :]:
        join(experiment, arm, offset)
    if after.segments != before.segments:
        experiment.duels.segments = experiment.duels.segments.changed(after.segments, offset)
    if after.examples != before.examples:
        impressions = experiment.impressions
        impressions.examples = impressions.examples.changed(after.examples)
    experiment.settings = after
    experiment.applied = {
        **experiment.applied, **after.model_dump(mode="json", include=set(changes))
    }  # fmt: skip
    experiment.coder.configure(after)


def pending(experiment: Experiment) -> list[rules.Difference]:
    """What `streamduel control apply` would change in an experiment."""
    return rules.differences(experiment.settings, experiment.roster.arms, experiment.configured)


def join(experiment: Experiment, arm: str, offset: int) -> None:
    """Count for a new arm, which the policy compares already; then renumber the coder."""
    experiment.duels.add_arm()
    experiment.roster.add(arm, offset)


def leave(experiment: Experiment, arm: str, offset: int) -> None:
    """Count no more for an arm that the policy has forgotten; then renumber the coder."""
    index = experiment.roster.index[arm]
    experiment.duels.retire_arm(index)
    experiment.roster.retire(arm, offset)
    experiment.impressions.retire_arm(arm)


def _decoded(values: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    size = sum(map(len, values.values()))
    if size > MAX_BYTES:
        raise ConfigurationError(f"settings must be at most {MAX_BYTES} bytes (found {size}).")
    try:
        return {key: read_value(value) for key, value in values.items()}
    except msgspec.ValidationError:
        raise ConfigurationError("settings has a number that is out of range.") from None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"settings has a value that is not JSON: {error}.") from None


def _arms(roster: Roster, wanted: Sequence[str]) -> list[str]:
    """The arms that will compete: those that stay, in their order, then the new ones."""
    new = [arm for arm in wanted if arm not in roster.index]
    roster.check_new(*new)
    return [*(arm for arm in roster.arms if arm in set(wanted)), *new]


def _listed(roster: Roster, before: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The arms that count as listed by the configuration.

    Those that `add_arm` has added do not: a configuration that does not list them never retires
    them. If fewer than two are left, retired ones stay listed, which changes nothing.
    """
    listed = [arm for arm in wanted if arm in before or arm not in roster.index]
    gone = [arm for arm in before if arm not in listed]
    return [*listed, *gone[: max(0, MIN_ARMS - len(listed))]]


def _check_frozen(
    experiment: Experiment,
    before: ExperimentSettings,
    after: ExperimentSettings,
    arms: Sequence[str],
) -> None:
    """Refuse to retire an arm of a pair that stays frozen."""
    frozen = experiment.decisions.guardrails.frozen
    if frozen is None or before.guardrails.freeze_pair != after.guardrails.freeze_pair:
        return
    for arm in frozen:
        if arm not in arms:
            raise ConfigurationError(f"arm '{arm[:80]}' must stay: it is in the frozen pair.")
