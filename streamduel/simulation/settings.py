"""The settings of a simulation: everything that its results depend on, checked together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy.typing as npt

from streamduel import __version__, policies
from streamduel.errors import ConfigurationError, PolicyError, PreferenceError
from streamduel.policies.base.parameter import as_written
from streamduel.preference.arrays import Floats
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.matrix import check
from streamduel.preference.regret import regrets
from streamduel.preference.winners import copeland_winners
from streamduel.simulation.delay import Delay
from streamduel.simulation.environment import checked_ties

MAX_SLATE: Final = 1_000_000
"""The most duels that a policy proposes together."""

MAX_RUNS: Final = 1_000_000
"""The most runs of a policy. A finished run takes some 3 kB, a planned one 100 bytes."""

PER_DECADE: Final = 10
"""Checkpoints between a power of ten and the next."""


class PolicySpec(NamedTuple):
    """A policy to simulate, with all its parameters, defaults included."""

    name: str
    params: dict[str, Any]


class Truth(NamedTuple):
    """The true preferences, which the policies do not know.

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
    """The settings of a simulation.

    Args:
        preferences: (K, K), [i, j] the probability that arm i beats arm j.
        policies: name and parameters of each policy. A policy with a parameter `horizon` gets that
            of the simulation unless one is given.
        horizon: T, the number of duels of each run.
        runs: R, the number of runs of each policy.
        seed: of all randomness, an integer from 0.
        regret: of one duel: condorcet, strong, weak or copeland.
        ties: the probability of a tie in a duel of two different arms; `preferences` and the regret
            then refer to the other duels.
        delay: of outcomes; None for no delay.
        slate: duels that a policy proposes at a time, before it observes their outcomes.
        changes: preferences by the number of duels after which they hold, less than the horizon.
        per_decade: the number of checkpoints between a power of ten and the next.
        until_sure: the confidence of an answer, whose time is measured in each run; None for no
            such measurement.
        compiled: whether compiled runs may be taken; they change no result.

    Raises:
        ConfigurationError: a number is out of range, or there is no policy.
        PolicyError: a policy or a parameter is unknown or not allowed.
        PreferenceError: a matrix is not a preference matrix, or the regret is not defined on it.

    Attributes:
        specs: the policies with all their parameters.
        truths: the true preferences by the number of duels after which they hold, from 0.
        checkpoints: the numbers of duels at which regret and champion are recorded.
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
    until_sure: float | None = None
    compiled: bool = True

    specs: tuple[PolicySpec, ...] = field(init=False)
    truths: dict[int, Truth] = field(init=False)
    checkpoints: list[int] = field(init=False)

    def __post_init__(self) -> None:
        _check_integer("the number of runs", self.runs, 1, MAX_RUNS)
        check_seed(self.seed)
        _check_integer("the slate", self.slate, 1, MAX_SLATE)
        _check_integer("the number of checkpoints per decade", self.per_decade, 1, 1000)
        _check_integer("the horizon", self.horizon, 1, MAX_DUELS)
        checked_ties(self.ties)
        _check_confidence(self.until_sure)
        if not self.policies:
            raise ConfigurationError(
                f"a simulation needs a policy; there are {', '.join(policies.names())}."
            )
        first = self._truth(check(self.preferences))
        later = {t: self._changed(first, t) for t in sorted(self.changes)}
        object.__setattr__(self, "truths", {0: first, **later})
        object.__setattr__(self, "specs", tuple(self._spec(*each) for each in self.policies))
        for place, spec in enumerate(self.specs):
            if spec in self.specs[:place]:
                raise ConfigurationError(
                    f"policy '{spec.name}' is given twice with the same parameters."
                )
        object.__setattr__(self, "checkpoints", checkpoints(self.horizon, self.per_decade))

    @property
    def n_arms(self) -> int:
        """K."""
        return len(self.truths[0].preferences)

    def _truth(self, p: Floats) -> Truth:
        return Truth(p, regrets(p, self.regret), frozenset(copeland_winners(p).tolist()))

    def _changed(self, first: Truth, t: int) -> Truth:
        """The truth of the matrix that holds after t duels."""
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
        try:
            return self._truth(p)
        except PreferenceError as error:
            raise PreferenceError(f"The preference matrix from {t} on: {error}") from error

    def _spec(self, name: str, given: Mapping[str, object]) -> PolicySpec:
        """A policy with all its parameters: it must know until when to explore, as in a service."""
        policy = policies.get(name)
        asked: dict[str, object] = {"horizon": self.horizon}
        if self.until_sure is not None:
            asked["confidence"] = self.until_sure
        known = {key: value for key, value in asked.items() if key in policy.declared}
        return PolicySpec(name, policy.check_parameters({**known, **given}, self.n_arms))

    def chosen(self, place: int) -> dict[str, Any]:
        """The given parameters of the policy at an index that differ from their defaults."""
        name, given = self.policies[place]
        return {
            key: value
            for key, value in self.specs[place].params.items()
            if key in given and value != self._default(name, given, key)
        }

    def _default(self, name: str, given: Mapping[str, object], key: str) -> object:
        """The value of a parameter if it is not given; None if it is required."""
        others = {other: value for other, value in given.items() if other != key}
        try:
            return self._spec(name, others).params.get(key)
        except PolicyError:
            return None

    def labels(self) -> list[str]:
        """A label of each policy: its name, and the parameters that differ from their defaults.

        Policies of the same name show all parameters in which they differ, defaults included.

        >>> p = [[0.5, 0.7], [0.3, 0.5]]
        >>> policies = [("rucb", {"alpha": 0.6}), ("rucb", {}), ("ccb", {}), ("c2b", {"rounds": 7})]
        >>> Settings(p, policies, horizon=100, runs=1, seed=0).labels()
        ['rucb (alpha=0.6)', 'rucb (alpha=0.51)', 'ccb', 'c2b (rounds=7)']
        """
        names = []
        for place, spec in enumerate(self.specs):
            rivals = [other.params for other in self.specs if other.name == spec.name]
            chosen = self.chosen(place)
            shown = [
                f"{key}={as_written(value)}"
                for key, value in spec.params.items()
                if key in chosen or any(params.get(key) != value for params in rivals)
            ]
            names.append(f"{spec.name} ({', '.join(shown)})" if shown else spec.name)
        return names

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
            "until_sure": self.until_sure,
        }


def checkpoints(horizon: int, per_decade: int = PER_DECADE) -> list[int]:
    """Integers from 1 to the horizon, evenly spaced on a log scale, with all powers of ten.

    There are fewer than `per_decade` between two powers of ten where integers are not that dense.

    >>> checkpoints(200)
    [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100, 126, 158, 200]
    """
    times, step = {horizon}, 0
    while (time := round(10 ** (step / per_decade))) < horizon:
        times.add(time)
        step += 1
    return sorted(times)


def check_seed(seed: int) -> None:
    """Refuse what cannot be a seed with a ConfigurationError."""
    _check_integer("the seed", seed, 0, None)


def _check_integer(what: str, value: object, least: int, most: int | None) -> None:
    """Refuse a value that is not an integer or out of range."""
    if type(value) is not int or value < least or (most is not None and value > most):
        allowed = f"from {least}" + (f" to {most}" if most is not None else "")
        raise ConfigurationError(f"{what} must be an integer {allowed} (found {value!r}).")


def _check_confidence(value: float | None) -> None:
    """Refuse a confidence that no answer can have, or that any answer has."""
    if value is not None and not 0 < value < 1:
        raise ConfigurationError(
            f"the confidence to reach must be greater than 0 and less than 1, such as 0.95 (found"
            f" {value})."
        )
