"""What is simulated: everything that the results depend on, checked before anything starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy.typing as npt

from streamduel import __version__, policies
from streamduel.errors import ConfigurationError, PolicyError
from streamduel.preference.arrays import Floats
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.matrix import check
from streamduel.preference.regret import regrets
from streamduel.preference.winners import copeland_winners
from streamduel.simulation.checkpoints import PER_DECADE, checkpoints
from streamduel.simulation.delay import Delay
from streamduel.simulation.environment import checked_ties

MOST_SLATE: Final = 1_000_000
"""So many duels are proposed at once at most."""


class Contestant(NamedTuple):
    """A policy that takes part.

    Attributes:
        name: the policy's.
        params: all its parameters by name, defaults included.
    """

    name: str
    params: dict[str, Any]


class Truth(NamedTuple):
    """What the policies do not know.

    Attributes:
        preferences: (K, K).
        regrets: (K, K), of one duel of each pair.
        winners: the Condorcet winner, or else all Copeland winners.
    """

    preferences: Floats
    regrets: Floats
    winners: frozenset[int]


@dataclass(frozen=True, eq=False)
class Settings:
    """A simulation, as it is asked for.

    Args:
        preferences: (K, K), [i, j] the probability that arm i beats arm j.
        policies: name and parameters of each policy. One that has a parameter `horizon` and was
            given none is told that of the simulation.
        horizon: T, how many duels each run has.
        runs: R, how many runs each policy has.
        seed: of everything, an integer from 0.
        regret: how a duel's cost is counted: condorcet, strong, weak or copeland.
        ties: the probability that nobody wins a duel of two different arms; `preferences` then
            are those of the duels that somebody wins, and so is the regret.
        delay: how long outcomes take; None for not at all.
        slate: how many duels a policy proposes at a time, unaware of their outcomes.
        changes: preferences that replace the first ones after so many duels, fewer than the
            horizon.
        per_decade: how many checkpoints there are between a power of ten and the next.
        compiled: whether compiled courses may be taken; they change no result.

    Raises:
        ConfigurationError: a number is out of range, or there is no policy.
        PolicyError: a policy or a parameter is unknown or not allowed.
        PreferenceError: a matrix is none, or the regret cannot be counted on it.

    Attributes:
        contestants: the policies with all their parameters.
        truths: what holds after so many duels, from 0.
        checkpoints: when regret and champion are looked at.
    """

    preferences: npt.ArrayLike
    policies: Sequence[tuple[str, Mapping[str, object]]]
    horizon: int
    runs: int
    seed: int
    regret: str = "condorcet"
    ties: float = 0.0
    delay: Delay | None = None
    slate: int = 1
    changes: Mapping[int, npt.ArrayLike] = field(default_factory=dict)
    per_decade: int = PER_DECADE
    compiled: bool = True

    contestants: tuple[Contestant, ...] = field(init=False)
    truths: dict[int, Truth] = field(init=False)
    checkpoints: list[int] = field(init=False)

    def __post_init__(self) -> None:
        _check_integer("the number of runs", self.runs, 1, 10**9)
        _check_integer("the seed", self.seed, 0, None)
        _check_integer("the slate", self.slate, 1, MOST_SLATE)
        _check_integer("the number of checkpoints per decade", self.per_decade, 1, 1000)
        _check_integer("the horizon", self.horizon, 1, MAX_DUELS)
        checked_ties(self.ties)
        if not self.policies:
            raise ConfigurationError(
                f"a simulation needs a policy; there are {', '.join(policies.names())}."
            )
        first = self._truth(check(self.preferences))
        later = {t: self._changed(first, t) for t in sorted(self.changes)}
        object.__setattr__(self, "truths", {0: first, **later})
        object.__setattr__(
            self, "contestants", tuple(self._contestant(*each) for each in self.policies)
        )
        self._check_contestants()
        object.__setattr__(self, "checkpoints", checkpoints(self.horizon, self.per_decade))

    @property
    def n_arms(self) -> int:
        """K."""
        return len(self.truths[0].preferences)

    def _truth(self, p: Floats) -> Truth:
        """What follows from a matrix."""
        winners = frozenset(copeland_winners(p).tolist())
        return Truth(p, regrets(p, self.regret), winners)

    def _changed(self, first: Truth, t: int) -> Truth:
        """What follows from the matrix that holds after t duels."""
        _check_integer("the time of a change", t, 1, None)
        if t >= self.horizon:
            raise ConfigurationError(
                f"the time of a change must be less than the horizon {self.horizon} (found {t})."
            )
        p = check(self.changes[t], f"The preference matrix from {t} on")
        if p.shape != first.preferences.shape:
            raise ConfigurationError(
                f"the preferences from {t} on must be of {len(first.preferences)} arms like the"
                f" first ones (found {len(p)})."
            )
        return self._truth(p)

    def _contestant(self, name: str, given: Mapping[str, object]) -> Contestant:
        """A policy with all its parameters, the horizon included."""
        policy = policies.get(name)
        if "horizon" in policy.declared and "horizon" not in given:
            given = {**given, "horizon": self.horizon}
        return Contestant(name, policy.check_parameters(given, self.n_arms))

    def chosen(self, place: int) -> dict[str, Any]:
        """The parameters that were given to a policy and are not what they would be anyway.

        Args:
            place: of the policy among those asked for, from 0.
        """
        name, given = self.policies[place]
        return {
            key: value
            for key, value in self.contestants[place].params.items()
            if key in given and value != self._otherwise(name, given, key)
        }

    def _otherwise(self, name: str, given: Mapping[str, object], key: str) -> object:
        """What a parameter would be had it not been given; None if it had to be."""
        others = {other: value for other, value in given.items() if other != key}
        try:
            return self._contestant(name, others).params.get(key)
        except PolicyError:
            return None

    def _check_contestants(self) -> None:
        """Refuse a policy that is there twice."""
        for place, contestant in enumerate(self.contestants):
            if contestant in self.contestants[:place]:
                raise ConfigurationError(
                    f"policy '{contestant.name}' is asked for twice with the same parameters."
                )

    def header(self) -> dict[str, Any]:
        """What the result of a run depends on, besides its policy and its number."""
        matrices = {
            str(t): hashlib.sha256(truth.preferences.astype("<f8").tobytes()).hexdigest()
            for t, truth in self.truths.items()
        }
        return {
            "streamduel": __version__,
            "matrix": matrices,
            "arms": self.n_arms,
            "horizon": self.horizon,
            "seed": self.seed,
            "regret": self.regret,
            "ties": float(self.ties),
            "delay": None if self.delay is None else str(self.delay),
            "slate": self.slate,
            "checkpoints": self.per_decade,
        }


def _check_integer(what: str, value: object, least: int, most: int | None) -> None:
    """Refuse what is no integer, or out of range."""
    if type(value) is not int or value < least or (most is not None and value > most):
        allowed = f"from {least}" + (f" to {most}" if most is not None else "")
        raise ConfigurationError(f"{what} must be an integer {allowed} (found {value!r}).")
