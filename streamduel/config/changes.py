"""Changes of a running experiment's settings: what differs from the configuration, and what may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from streamduel import policies
from streamduel.config.experiment import DESCRIPTIVE, ExperimentSettings
from streamduel.config.messages import Problem, mistakes
from streamduel.config.shape import one_of
from streamduel.errors import (
    ConfigurationError,
    ParameterError,
    PolicyError,
    nearest,
    shortened,
    shown,
)
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.records import MAX_TIME

FIXED: Final = ("join_window_ms", "max_per_client")
"""Settings that a restart needs to read the last stretch of the click log again: with another
value, it would join and cap impressions differently."""

MAX_PLAN_BYTES: Final = 16 * 1024 * 1024
"""A snapshot entry must fit into one record; Kafka's connector writes none above 16 MiB."""

PAIR_BYTES: Final = 160
"""What an entry has for each pair of a batch, without names: up to 149 with duels and ties of six
digits; the rest is a reserve for longer numbers."""

CELL_BYTES: Final = 16
"""What an entry has for each cell of a segment, which has arms times arms of them."""


class Difference(NamedTuple):
    """A setting in which a running experiment and its configuration differ.

    Attributes:
        key: its name.
        running: the value that the experiment runs with.
        configured: the value in the configuration.
    """

    key: str
    running: Any
    configured: Any

    @property
    def fixed(self) -> bool:
        """Whether it cannot change while the experiment runs."""
        return self.key in FIXED

    def __str__(self) -> str:
        return f"{self.key}: {_json(self.running)} → {_json(self.configured)}"


def problems(settings: ExperimentSettings, arms: Sequence[str]) -> Iterator[Problem]:
    """Contradictions among settings, and to the arms.

    Args:
        settings: valid by themselves.
        arms: the arms that compete.
    """
    known, name = policies.names(), settings.policy.name
    if name not in known:
        hint = nearest(name, known) or "."
        yield Problem("policy.name", f"must be {one_of(known)} (found {shown(name)}){hint}")
    else:
        try:
            settings.create_policy(arms)
            yield from settings.problems(arms)
            if (found := batch_bytes(settings, arms)) > MAX_PLAN_BYTES:
                yield Problem(
                    "arms",
                    f"must be fewer with policy {shown(name)}: its plan lists all pairs of arms, "
                    f"and may take at most {MAX_PLAN_BYTES} bytes (found {len(arms)} arms, which "
                    f"take about {found}).",
                )
        except ParameterError as error:
            # The policy's prior comes from the key `prior` of the experiment.
            own = error.parameter == "prior" and settings.prior.is_given
            yield Problem("prior" if own else f"policy.{error.parameter}", error.predicate)
        except PolicyError as error:
            yield Problem(None, str(error))
    yield from settings.guardrails.problems(arms)


def batch_bytes(settings: ExperimentSettings, arms: Sequence[str]) -> int:
    """About how many bytes the largest plan of a batched policy takes in a snapshot entry.

    Each pair of arms is in the plan, in the assignment and among the assigned pairs. 0 for other
    policies: `slate` bounds their plans.
    """
    if not issubclass(policies.get(settings.policy.name), BatchedPolicy):
        return 0
    cells = sum(map(len, settings.segments.values())) * len(arms) ** 2
    names = sum(len(msgspec.json.encode(arm)) - 2 for arm in arms)  # without quotes
    others = len(arms) - 1
    return PAIR_BYTES * len(arms) * others // 2 + 3 * others * names + CELL_BYTES * cells


def differences(
    running: ExperimentSettings, arms: Sequence[str], configured: ExperimentSettings
) -> list[Difference]:
    """What applying a configuration would change in a running experiment.

    A configuration that does not name the policy leaves it as it is, unless it sets parameters: the
    default of another release may be another policy. Arms that control records have added or
    retired are no difference.

    Args:
        running: the settings that the experiment runs with.
        arms: its present arms.
        configured: its section of the configuration.
    """
    if not configured.policy.is_named:
        policy = running.policy
        if configured.policy.parameters:
            policy = configured.policy.model_copy(update={"name": policy.name})
        configured = configured.model_copy(update={"policy": policy})
    before, after = running.in_fold(), configured.in_fold()
    removed = set(running.arms).difference(configured.arms)
    kept = [arm for arm in arms if arm not in removed]
    before["arms"] = list(arms)
    after["arms"] = [*kept, *(arm for arm in configured.arms if arm not in arms)]
    if kept == before["arms"] and {*configured.arms} <= {*running.arms, *arms}:
        after["arms"] = before["arms"]
    if running.join_window(MAX_TIME) == configured.join_window(MAX_TIME):  # one may be null
        after["join_window_ms"] = before["join_window_ms"]
    return [
        Difference(key, before[key], value) for key, value in after.items() if before[key] != value
    ]


def changed(settings: ExperimentSettings, changes: Mapping[str, Any]) -> ExperimentSettings:
    """Settings with other values of some keys, each valid by itself; see `problems`.

    Raises:
        ConfigurationError: a value is not allowed; the first mistake, as a sentence.
    """
    for key in DESCRIPTIVE:
        if key in changes:
            raise ConfigurationError(f"settings.{key} is read from the configuration alone.")
    try:
        return ExperimentSettings.model_validate({**settings.in_fold(), **changes})
    except ValidationError as error:
        first = next(mistakes(error, ExperimentSettings, ("settings",)))
        raise ConfigurationError(shortened(first.sentence, 500)) from None


def check_change(
    before: ExperimentSettings,
    after: ExperimentSettings,
    arms: Sequence[str],
    where: str = "settings",
) -> None:
    """Refuse settings that contradict each other, or that a running experiment cannot take.

    Args:
        before: the settings that it runs with.
        after: the settings that it would run with.
        arms: the arms that would compete.
        where: what the keys stand below, for error messages.

    Raises:
        ConfigurationError: the reason, as a sentence.
    """
    for it in differences(before, arms, after):
        if it.fixed:
            raise ConfigurationError(
                f"{where}.{it.key} must stay {_json(it.running)} while the experiment runs (found "
                f"{_json(it.configured)}); restore the value, or use a new experiment name."
            )
    kept = set()  # their arms may have been retired since
    if before.guardrails.freeze_pair == after.guardrails.freeze_pair:
        kept.add("guardrails.freeze_pair")
    if before.prior == after.prior:
        kept |= {"prior.wins", "prior.scores"}
    for problem in problems(after, arms):
        if problem.key in kept:
            continue
        sentence = problem.sentence if problem.key is None else problem.below(where)
        raise ConfigurationError(shortened(sentence, 500))


def _json(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), 200)
