"""An experiment's part of the configuration: who competes, how the winner is sought, what is held.

All of it enters the fold, so none of it may change while the experiment runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from streamduel import policies
from streamduel.config.shape import one_of
from streamduel.errors import nearest, shown
from streamduel.interleaving.credit import (
    CREDITS,
    MAX_ETA,
    MAX_WEIGHT,
    POWER_LAW_RANKS,
    Credit,
    create,
)
from streamduel.records import MAX_ACTION, MAX_NAME, MAX_TIME

_JOIN_WINDOW_MS: Final = 600_000
"""Ten minutes: hardly anybody comes back to a page of results after that."""

# Strict: `true` is no port, and a quoted number is a mistake to point out.
Integer = Annotated[int, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, strict=True)]
Action = Annotated[str, Field(min_length=1, max_length=MAX_ACTION, strict=True)]
Weight = Annotated[float, Field(strict=True, ge=-MAX_WEIGHT, le=MAX_WEIGHT)]
Weights = Annotated[dict[Action, Weight], Field(min_length=1, max_length=1000)]
Propensity = Annotated[float, Field(strict=True, gt=0, le=1)]
Propensities = Annotated[list[Propensity], Field(min_length=1, max_length=POWER_LAW_RANKS)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicySettings(Section):
    """The dueling-bandit policy of an experiment; every further key is its parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field("rucb", description="One of those that `streamduel policies` lists.")

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's own parameters, those not given left out."""
        return dict(self.model_extra or {})


class CreditSettings(Section):
    """How the clicks of an interleaved impression are credited to a side."""

    name: str = Field(
        "click_count",
        description="The credit function: what makes a side win the impression. See"
        " docs/interleaving.md#credit-functions.",
        json_schema_extra={"enum": [*CREDITS]},
    )
    weights: Weights | None = Field(
        None,
        description="Of `weighted`, which needs them: what a click of each action weighs, from"
        " -1000 to 1000.",
    )
    propensities: Propensities | None = Field(
        None,
        description="Of `position_debiased`, which needs them or `eta`: how likely a user is to"
        " look at each rank, above 0 and at most 1.",
    )
    eta: Annotated[float, Field(strict=True, ge=0, le=MAX_ETA)] | None = Field(
        None,
        description="Of `position_debiased`: the propensity of rank r, from 0, is"
        " 1 / (r + 1) ** eta.",
    )

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in CREDITS:
            hint = nearest(name, CREDITS)
            raise ValueError(f"must be {one_of(CREDITS)} (found {shown(name)}){hint}")
        return name

    @model_validator(mode="after")
    def _complete(self) -> CreditSettings:
        self.create()
        return self

    def create(self) -> Credit:
        """The credit function.

        Raises:
            InterleavingError: a parameter is missing, or is of another credit function.
        """
        given = {key: value for key, value in self if key != "name" and value is not None}
        return create(self.name, **given)


class StopSettings(Section):
    """When exploration ends: the champion is then served alone, and the status is `finished`."""

    confidence: Annotated[float, Field(ge=0.5, lt=1)] | None = Field(
        None,
        description="Explore until the champion is the winner with this confidence, such as 0.99;"
        " for ever, if null.",
    )
    min_duels: Annotated[Integer, Field(ge=0, le=MAX_TIME)] = Field(
        0, description="Not before so many duels."
    )


class FallbackSettings(Section):
    """What ranker services serve when streamduel is silent.

    Each assignment says until when it holds (`valid_until`), and which arm to serve alone
    afterwards (`fallback`). While records come, it is renewed when half of that time is over.
    """

    arm: Name | None = Field(
        None,
        description="The arm to serve alone, the ranker you trust; assignments hold for ever, if"
        " null.",
    )
    idle_ms: Annotated[Integer, Field(ge=1_000, le=MAX_TIME)] = Field(
        600_000,
        description="An assignment holds for so long; after as long without a record of the"
        " experiment `/readyz` says so.",
    )


class GuardrailSettings(Section):
    """Limits within which the policy has its way, while the experiment is `running`."""

    control_arm: Name | None = Field(
        None, description="An arm that is always served alone to `min_share` of the impressions."
    )
    min_share: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="The control arm's floor; the policy shares out the rest."
    )
    max_share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="At most this share of the impressions has a given arm in it, unless it is the"
        " champion. What is above goes to the champion alone.",
    )
    freeze_pair: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = Field(
        None, description="Serve this pair, whatever the policy wants, until `unfreeze_pair`."
    )
    fallback: FallbackSettings = FallbackSettings()

    @property
    def floor(self) -> float:
        """The control arm's share, 0 without one."""
        return self.min_share or 0.0

    def mistakes(self, arms: Sequence[str]) -> Iterator[str]:
        """What contradicts the experiment's arms or itself, a sentence each."""
        named = [("control_arm", self.control_arm)]
        named += [("freeze_pair", arm) for arm in self.freeze_pair or []]
        named += [("fallback.arm", self.fallback.arm)]
        for key, arm in named:
            if arm is not None and arm not in arms:
                hint = nearest(arm, arms) or "."
                listed = ", ".join(arms[:10]) + (", …" if len(arms) > 10 else "")
                yield f"{key} must be one of the arms, {listed} (found {shown(arm)}){hint}"
        if (self.control_arm is None) != (self.min_share is None):
            there, lacking = ("min_share", "control_arm")[:: -1 if self.min_share is None else 1]
            yield f"{lacking} must be given, too: {there} has no effect without it."
        if self.freeze_pair and self.freeze_pair[0] == self.freeze_pair[1]:
            yield f"freeze_pair must be two arms (found {shown(self.freeze_pair[0])} twice)."
        if self.max_share is not None and self.floor > self.max_share:
            yield (
                f"min_share must be at most max_share, {self.max_share} (found {self.min_share}),"
                f" because the control arm need not be the champion."
            )


class ExperimentSettings(Section):
    """One experiment: which rankers compete, and how the winner is sought.

    All of it enters the fold, so none of it may change while the experiment runs.
    """

    arms: Annotated[list[Name], Field(min_length=2, max_length=1000)] = Field(
        description="The rankers' names, 2 to 1000 of them."
    )
    policy: PolicySettings = PolicySettings(name="rucb")
    seed: Annotated[Integer, Field(ge=0, lt=2**64)] = Field(
        0, description="Of the policy's random generator."
    )
    ties: Literal["half", "drop"] = Field(
        "half", description="A tie is a duel and half a win each way, or no duel at all."
    )
    credit: CreditSettings = CreditSettings(name="click_count")
    no_click: Literal["tie", "drop"] = Field(
        "tie", description="An impression without clicks is a tie, or no duel at all."
    )
    join_window_ms: Annotated[Integer, Field(ge=0, le=MAX_TIME)] | None = Field(
        None,
        description="Stream time for which an `impression` waits for its clicks, and a `click` that"
        " comes first for its impression. At most `dedupe.window_ms`; if null, ten minutes or that,"
        " if it is shorter.",
    )
    decide_every: Annotated[Integer, Field(ge=1, le=10**9)] = Field(
        1, description="Duels between two decisions."
    )
    slate: Annotated[Integer, Field(ge=1, le=10_000)] = Field(
        1,
        description="Duels proposed per decision; an assignment's shares are their frequencies.",
    )

    batch_republish_ms: Annotated[Integer, Field(ge=1, le=MAX_TIME)] = Field(
        60_000, description="Stream time between two publications of what a batch still lacks."
    )
    batch_deadline_ms: Annotated[Integer, Field(ge=1, le=MAX_TIME)] | None = Field(
        None, description="Stream time after which a batch closes though it is not full."
    )
    batch_min_fill: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="The share of its quota that each pair must have for that."
    )
    stop: StopSettings = StopSettings()
    guardrails: GuardrailSettings = GuardrailSettings()

    def join_window(self, longest: int) -> int:
        """For how much stream time an impression waits for its clicks.

        Args:
            longest: for how much the dedupe window remembers its id.
        """
        return min(_JOIN_WINDOW_MS, longest) if self.join_window_ms is None else self.join_window_ms

    @field_validator("arms")
    @classmethod
    def _distinct(cls, arms: list[str]) -> list[str]:
        for index, arm in enumerate(arms):
            if arm in arms[:index]:
                raise ValueError(f"has {shown(arm)} twice")
        return arms

    def create_policy(self, n_arms: int | None = None) -> policies.Policy:
        """The policy, fresh.

        Args:
            n_arms: how many arms there are by now; as many as configured, if left out.

        Raises:
            PolicyError: its name or a parameter is not allowed.
        """
        kind = policies.get(self.policy.name)
        parameters = kind.check_parameters(self.policy.parameters)
        return kind(n_arms or len(self.arms), seed=self.seed, **parameters)
