"""What the API answers, as msgspec structs; the OpenAPI document is made of them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from streamduel.records import Assignment, Name

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Wins = Annotated[float, Meta(ge=0, description="A tie is half a win for each.")]


class Tallies(msgspec.Struct, frozen=True):
    """How many records of the experiment had which fate."""

    accepted: Count
    duplicate: Count
    dead_letter: Count
    late: Count
    unjoined: Count


class Open(msgspec.Struct, frozen=True):
    """What waits: impressions for clicks, and clicks for their impression."""

    impressions: Count
    clicks: Count


class Summary(msgspec.Struct, frozen=True):
    """One experiment as of the last commit.

    `assignment` is the record in force, as it was published; null before the first decision.
    `champion_confidence` is a lower bound, valid at any time. `copeland_scores` holds for each arm
    the share of the other arms that it beats.
    """

    assignment: Assignment | None
    status: Literal["running", "paused", "finished"]
    policy: str
    stage: str
    champion: Name
    champion_confidence: Share
    epoch: Count
    duels: Count
    arms: list[Name]
    copeland_scores: dict[Name, Share]
    tallies: Tallies
    open: Open


class Experiments(msgspec.Struct, frozen=True):
    """The experiments whose partitions this process holds, by name; or the one asked for."""

    experiments: dict[Name, Summary]


class HistoryPoint(msgspec.Struct, frozen=True):
    """What was known of an experiment at one moment; `at` is in seconds since the Unix epoch."""

    at: Annotated[float, Meta(ge=0)]
    duels: Count
    champion_confidence: Share
    regret: Annotated[float, Meta(ge=0)]
    regret_bound: Annotated[float, Meta(ge=0)]


class HistoryAnswer(msgspec.Struct, frozen=True):
    """How confidence and regret came to be what they are, since the process started.

    Some hundred points at most, the oldest first. `kind` says which regret it is, `regret_bound`
    what it is at most, with 95 % confidence at all times together.
    """

    experiment: Name
    since: Annotated[float, Meta(ge=0)]
    kind: Literal["condorcet", "copeland"]
    points: list[HistoryPoint]


class MatrixAnswer(msgspec.Struct, frozen=True):
    """Who has beaten whom how often: `wins[i][j]` is how often arm i has beaten arm j.

    Of more than 100 arms, those with the largest Copeland scores; the best come first. `of` says
    how many there are in all.
    """

    experiment: Name
    of: Count
    arms: list[Name]
    wins: list[list[Wins]]


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no answer, in a sentence."""

    error: str


class Well(msgspec.Struct, frozen=True):
    """All is well."""

    status: Literal["alive", "ready"]


class Unwell(msgspec.Struct, frozen=True):
    """What is amiss, a sentence each."""

    status: Literal["not alive", "not ready"]
    reasons: Annotated[list[str], Meta(min_length=1)]
