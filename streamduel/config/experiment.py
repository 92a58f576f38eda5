"""The settings of an experiment: arms, policy, credit, batches, stop rule and guardrails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from streamduel import policies
from streamduel.config.messages import Problem
from streamduel.config.prior import PriorSettings
from streamduel.config.shape import one_of
from streamduel.errors import listed, nearest, shown
from streamduel.interleaving.credit import (
    CREDITS,
    MAX_ETA,
    MAX_WEIGHT,
    POWER_LAW_RANKS,
    Credit,
    create,
)
from streamduel.preference.counts import MAX_DUELS
from streamduel.records import MAX_ACTION, MAX_NAME, MAX_TIME
from streamduel.records import MAX_SEGMENTS as MAX_KINDS
from streamduel.section import MAX_ARMS, Integer, Name, Number, Pair, Section

JOIN_WINDOW_MS: Final = 600_000
"""Default of `join_window_ms`, ten minutes: users rarely return to a page of results later."""

MIN_ARMS: Final = 2
DESCRIPTIVE: Final = ("owner", "hypothesis", "links", "notes")
"""Settings that are only shown. They are not part of the state."""

MAX_TEXT: Final = 4000
"""The most characters of a descriptive text."""

MAX_LINKS: Final = 20
"""More would not be read on the status page."""

Link = Annotated[str, Field(pattern=r"^https?://[^\s\"<>]+$", max_length=2048)]
Action = Annotated[str, Field(min_length=1, max_length=MAX_ACTION, strict=True)]
Weight = Annotated[float, Field(strict=True, ge=-MAX_WEIGHT, le=MAX_WEIGHT)]
MAX_SEGMENTS: Final = 32
"""Each further segment lowers the confidence of the others."""

MAX_EXAMPLES: Final = 20
"""The most examples that a person is likely to read."""

MAX_CELLS: Final = 200_000
"""Counts of pairs in all segments: 3 MB, judged in a tenth of a second."""

Segments = Annotated[
    dict[Name, Annotated[list[Name], Field(min_length=1, max_length=MAX_SEGMENTS)]],
    Field(max_length=MAX_KINDS),
]
Weights = Annotated[dict[Action, Weight], Field(min_length=1, max_length=1000)]
Propensity = Annotated[float, Field(strict=True, gt=0, le=1)]
Propensities = Annotated[list[Propensity], Field(min_length=1, max_length=POWER_LAW_RANKS)]


class PolicySettings(Section):
    """The dueling-bandit policy and its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(policies.DEFAULT, description="A policy that `streamduel policies` lists.")

    @property
    def parameters(self) -> dict[str, Any]:
        """The configured parameters of the policy."""
        return dict(self.model_extra or {})

    @property
    def is_named(self) -> bool:
        """Whether the configuration names the policy; otherwise it is the default."""
        return "name" in self.model_fields_set


class CreditSettings(Section):
    """The credit function, which turns the clicks of an impression into a duel."""

    name: str = Field(
        "click_count",
        description="The credit function, which decides who wins an impression. See"
        " docs/interleaving.md#credit-functions.",
        json_schema_extra={"enum": [*CREDITS]},
    )
    weights: Weights | None = Field(
        None,
        description="Required by `weighted`: the weight of a click by its action, from -1000 to"
        " 1000.",
    )
    propensities: Propensities | None = Field(
        None,
        description="For `position_debiased`, which needs `propensities` or `eta`: the probability"
        " that a user examines each rank, above 0 and at most 1.",
    )
    eta: Annotated[float, Field(strict=True, ge=0, le=MAX_ETA)] | None = Field(
        None,
        description="For `position_debiased`: the propensity of rank r, from 0, is"
        " 1 / (r + 1) ** eta.",
    )

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name not in CREDITS:
            hint = nearest(name, CREDITS)
            raise ValueError(f"must be {one_of(CREDITS)} (found {shown(name)}){hint}")
        return name

    @model_validator(mode="after")
    def _check_parameters(self) -> CreditSettings:
        self.create()
        return self

    def create(self) -> Credit:
        """The credit function.

        Raises:
            InterleavingError: a parameter is missing, or belongs to another credit function.
        """
        return create(self.name, **self.model_dump(exclude={"name"}, exclude_none=True))


class StopSettings(Section):
    """The stop rule: exploration ends and only the champion is served (status `finished`)."""

    confidence: Annotated[Number, Field(ge=0.5, lt=1)] | None = Field(
        None,
        description="Explore until the champion is the winner with this confidence, such as 0.99;"
        " null: 0.95 with `top_two` and `batched_top_two`; policies with a horizon end at it;"
        " others explore permanently.",
    )
    min_duels: Integer = Field(
        0, ge=0, le=MAX_TIME, description="Number of duels before which neither `confidence` nor"
        " the policies `top_two` and `batched_top_two` end exploration. A policy still ends at its"
        " horizon, or with one arm left.",
    )  # fmt: skip


class FallbackSettings(Section):
    """What ranker services serve while streamduel publishes nothing.

    Each assignment carries the time until which it is valid (`valid_until`) and the arm to serve
    alone afterwards (`fallback`). While records arrive, it is renewed after half of that time.
    """

    arm: Name | None = Field(
        None,
        description="The arm to serve alone, a ranker you trust; null: assignments do not expire.",
    )
    idle_ms: Integer = Field(
        600_000,
        ge=1_000,
        le=MAX_TIME,
        description="How long an assignment is valid; after as long without a record of the"
        " experiment, `/readyz` reports it as idle.",
    )


class GuardrailSettings(Section):
    """Limits on the policy's plan while the experiment is `running`."""

    control_arm: Name | None = Field(
        None, description="An arm that is always served alone to `min_share` of the impressions."
    )
    min_share: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        None, description="The control arm's share; the policy distributes the rest."
    )
    max_share: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        None,
        description="Largest share of the impressions in which an arm takes part, unless it is the"
        " champion. The excess is served the champion alone.",
    )
    freeze_pair: Pair | None = Field(
        None, description="Serve only this pair, until the control action `unfreeze_pair`."
    )
    fallback: FallbackSettings = FallbackSettings()

    @property
    def floor(self) -> float:
        """The control arm's share, 0 without one."""
        return self.min_share or 0.0

    def problems(self, arms: Sequence[str]) -> Iterator[Problem]:
        """Contradictions to the arms or between keys."""
        named = [("control_arm", self.control_arm)]
        named += [("freeze_pair", arm) for arm in self.freeze_pair or []]
        named += [("fallback.arm", self.fallback.arm)]
        for name, arm in named:
            if arm is not None and arm not in arms:
                hint = nearest(arm, arms) or "."
                sentence = f"must be one of the arms, {listed(arms)} (found {shown(arm)}){hint}"
                yield Problem(f"guardrails.{name}", sentence)
        if self.control_arm is None and self.min_share is not None:
            yield Problem(
                "guardrails.control_arm", "must be given, too: min_share has no effect without it."
            )
        if self.min_share is None and self.control_arm is not None:
            yield Problem(
                "guardrails.min_share", "must be given, too: control_arm has no effect without it."
            )
        if self.freeze_pair and self.freeze_pair[0] == self.freeze_pair[1]:
            sentence = f"must be two arms (found {shown(self.freeze_pair[0])} twice)."
            yield Problem("guardrails.freeze_pair", sentence)
        if self.max_share is not None and self.floor > self.max_share:
            yield Problem(
                "guardrails.min_share",
                f"must be at most max_share, {self.max_share} (found {self.min_share}), because the"
                f" control arm need not be the champion.",
            )


class ExperimentSettings(Section):
    """One experiment: the rankers that compete, and how the best one is found.

    All settings but the `DESCRIPTIVE` ones enter the fold: a changed one takes effect at a control
    record, which `streamduel control apply` writes.
    """

    arms: Annotated[list[Name], Field(min_length=MIN_ARMS, max_length=MAX_ARMS)] = Field(
        description=f"The rankers' names, {MIN_ARMS} to {MAX_ARMS} of them.",
        examples=[["bm25", "ltr-v1", "ltr-v2", "ltr-v3"]],
    )
    policy: PolicySettings = PolicySettings()
    aim: Literal["identify", "earn"] = Field(
        "identify",
        description="With `identify`, exploration ends with a sure answer; with `earn`, it never"
        " ends, and loses as little as possible.",
    )
    smallest_difference: Annotated[float, Field(strict=True, ge=0, lt=0.5)] | None = Field(
        None,
        description="A difference that does not matter, such as 0.01: the experiment may end when"
        " no other arm wins more than 1/2 plus this value against the champion, a tie being half a"
        " win. A larger value ends it sooner. null: any difference matters.",
    )
    seed: Integer = Field(
        0, ge=0, lt=2**64, description="Seed of the policy's random number generator."
    )
    ties: Literal["half", "drop"] = Field(
        "half",
        description="With `half`, a tie is a duel and half a win for each arm; with `drop`, it is"
        " no duel.",
    )
    credit: CreditSettings = CreditSettings(name="click_count")
    no_click: Literal["tie", "drop"] = Field(
        "tie",
        description="With `tie`, an impression without clicks is a tie; with `drop`, no duel.",
    )
    join_window_ms: Annotated[Integer, Field(ge=0, le=MAX_TIME)] | None = Field(
        None,
        description="Join window in stream time: how long an `impression` waits for its clicks, and"
        " a pending `click` for its impression. At most `dedupe.window_ms`; null: ten minutes, or"
        " `dedupe.window_ms` if that is shorter.",
    )
    max_per_client: Annotated[Integer, Field(ge=1, le=MAX_TIME)] | None = Field(
        None,
        description="The most duels of one `client` that count within the dedupe window; further"
        " records of the client are `capped`. null: no limit.",
    )
    decide_every: Integer = Field(1, ge=1, le=10**9, description="Duels between two decisions.")
    slate: Integer = Field(
        1,
        ge=1,
        le=10_000,
        description="Duels proposed per decision; an assignment's shares are their frequencies.",
    )
    batch_republish_ms: Integer = Field(
        60_000,
        ge=1,
        le=MAX_TIME,
        description="Stream time between two assignments with the remaining duels of a batch.",
    )
    batch_deadline_ms: Annotated[Integer, Field(ge=1, le=MAX_TIME)] | None = Field(
        None, description="Stream time after which a batch closes before it is full."
    )
    batch_min_fill: Number = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of its duels that each pair must have for a batch to close early.",
    )
    segments: Segments = Field(
        {},
        description="Parts of the traffic whose duels are counted apart, too: names by kind, such"
        " as `{class: [navigational, informational]}`. They decide nothing. A record names its"
        f" own in `segment`. At most {MAX_KINDS} kinds and {MAX_SEGMENTS} names.",
        examples=[{"class": ["navigational", "informational"]}],
    )
    examples: Integer = Field(
        MAX_EXAMPLES,
        ge=0,
        le=MAX_EXAMPLES,
        description="Impressions of the two leading rankers that are kept to look at: query,"
        " documents and clicks, of records that have `query` and `docs`. With 0, no text of a"
        " query is kept.",
    )
    stop: StopSettings = StopSettings()
    guardrails: GuardrailSettings = GuardrailSettings()
    prior: PriorSettings = PriorSettings()
    owner: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = Field(
        None,
        description="Who answers questions about the experiment, such as a team or an address.",
    )
    hypothesis: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] | None = Field(
        None, description="What the experiment is expected to show."
    )
    links: Annotated[list[Link], Field(max_length=MAX_LINKS)] = Field(
        [], description="Addresses of tickets, documents or dashboards, with http:// or https://."
    )
    notes: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] | None = Field(
        None, description="Anything else that readers of the status page should know."
    )

    def in_fold(self) -> dict[str, Any]:
        """The settings that enter the fold, as plain JSON: all but the `DESCRIPTIVE` ones."""
        return self.model_dump(mode="json", exclude=set(DESCRIPTIVE))

    def join_window(self, max_ms: int) -> int:
        """The join window in milliseconds, at most those of the dedupe window."""
        own = JOIN_WINDOW_MS if self.join_window_ms is None else self.join_window_ms
        return min(own, max_ms)

    @field_validator("arms")
    @classmethod
    def _check_distinct(cls, arms: list[str]) -> list[str]:
        for index, arm in enumerate(arms):
            if arm in arms[:index]:
                raise ValueError(f"has {shown(arm)} twice")
        return arms

    @field_validator("segments")
    @classmethod
    def _check_segments(cls, segments: dict[str, list[str]]) -> dict[str, list[str]]:
        if (found := sum(map(len, segments.values()))) > MAX_SEGMENTS:
            raise ValueError(f"must have at most {MAX_SEGMENTS} names in all (found {found})")
        for kind, names in segments.items():
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise ValueError(f"has {shown(name)} twice in {shown(kind)}")
        return segments

    def create_policy(self, arms: Sequence[str] | None = None) -> policies.Policy:
        """A new policy in its initial state.

        Args:
            arms: the present arms; by default, those configured.

        Raises:
            PolicyError: its name or a parameter is not allowed.
        """
        arms = self.arms if arms is None else arms
        kind = policies.get(self.policy.name)
        shared = {
            "aim": self.aim,
            "confidence": self.stop.confidence,
            "smallest_difference": self.smallest_difference,
            "min_duels": min(self.stop.min_duels, MAX_DUELS),
        }
        wanted = {key: it for key, it in shared.items() if key in kind.declared and it is not None}
        parameters = kind.check_parameters({**wanted, **self.policy.parameters})
        if self.prior.is_given and "prior" in kind.declared:
            parameters["prior"] = self.prior.pseudo_wins(arms)
        return kind(len(arms), seed=self.seed, **parameters)

    def problems(self, arms: Sequence[str]) -> Iterator[Problem]:
        """Contradictions between keys, and to the arms."""
        aim, confidence = self.policy.parameters.get("aim", self.aim), self.stop.confidence
        if aim == "earn" and confidence is not None:
            yield Problem(
                "aim",
                f"must be 'identify' if stop.confidence is given (found 'earn' and {confidence}):"
                f" an experiment that earns never ends.",
            )
        if self.aim == "earn" and "horizon" in policies.get(self.policy.name).declared:
            ends = f"must be 'identify' with policy {shown(self.policy.name)}: it has a horizon."
            yield Problem("aim", ends)
        cells = sum(map(len, self.segments.values())) * len(arms) ** 2
        if cells > MAX_CELLS:
            yield Problem(
                "segments",
                f"must be fewer with {len(arms)} arms: arms times arms times segments may be at"
                f" most {MAX_CELLS} (found {cells}).",
            )
        for key in sorted({"prior", "prior_from"} & self.policy.parameters.keys()):
            sentence = "must be left out; the experiment's own key prior names the arms."
            yield Problem(f"policy.{key}", sentence)
        has_difference = self.smallest_difference is not None
        for key, given in (("smallest_difference", has_difference), ("prior", self.prior.is_given)):
            able = [each for each in policies.names() if key in policies.get(each).declared]
            if given and self.policy.name not in able:
                yield Problem(
                    key,
                    f"must be left out with policy {shown(self.policy.name)}; policies that use"
                    f" one: {', '.join(able)}.",
                )
        yield from self.prior.problems(list(dict.fromkeys([*self.arms, *arms])))
