"""Top-two Thompson sampling with elimination by wagers."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from streamduel.policies.base.normal_posterior import NormalPosterior, normal_draws
from streamduel.policies.base.parameter import Choice, Real
from streamduel.policies.base.windowed_policy import Window, WindowedPolicy
from streamduel.preference.arrays import Booleans, Floats
from streamduel.preference.elimination import Elimination
from streamduel.preference.evidence import nats
from streamduel.preference.logarithm import ln

MARGIN = 1e-9
"""Nats beyond what the confidence needs, so that rounding cannot leave it just below."""


class TopTwo(WindowedPolicy):
    """Names the Condorcet winner with a confidence that is valid at any time, and soon.

    An experimenter waits for an answer: the champion, or that there is none, with 95 % confidence.
    Policies that only have little regret give it late or never, because a policy that is convinced
    of its champion compares the champion with itself, which tells nothing.

    1. Race. While several arms are in: the leader L is the arm with the largest draw of its
       Copeland score, and the challenger the arm with the largest draw of θ_jL. An arm w is out
       once the wager against "w beats all others" has won 1/δ (`Elimination`). The Condorcet
       winner, if there is one, is ever out with a probability of at most δ.
    2. Proof. One arm c is left: if any arm beats all others, it is c. It meets the rival against
       which it has the least evidence, until each is surely beaten. Then c beats all others, which
       assumes nothing, and exploration is `finished`; c meets itself.
    3. Search. All arms are out: surely none beats all others. For a Copeland winner, the leader is
       drawn among all arms, and meets the arm with the largest draw of θ_jL among those of which
       it is not yet sure which one wins; itself, if no draw is above 1/2.

    Everything follows from the counts, so delayed and unproposed duels count in full. Duels in
    flight count in the proof: each is expected to bring what the duels of its pair have brought.

    With `aim` "earn" it never finishes: an arm is out once the wager has won t/δ, comes back when t
    has grown, and an arm that is left alone meets itself. That has less regret and no answer.

    Choose it unless there is a reason for another one: it needs no horizon, decides fast with any
    number of arms, and tells when it is done.

    Draws from the generator: in a race and a search, normal draws (`normal_draws`): K of scores,
    then K of preferences.

    Args:
        confidence: 1 - δ, of the answer.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = TopTwo(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), policy.finished, int(policy.wins.sum())
    (0, 1, True, 105)

    Source: our own (docs/research); the leader and challenger after D. Russo, "Simple Bayesian
    algorithms for best-arm identification", Operations Research 68(6), 2020 (top-two Thompson
    sampling), and Wu and Liu, "Double Thompson Sampling for Dueling Bandits", NIPS 2016.
    """

    name = "top_two"
    summary = "finds the winner soon, and tells with what confidence; needs no horizon"
    paper = "our own, after Russo, Simple Bayesian Algorithms for Best-Arm Identification, 2020"
    seeks = "condorcet"

    confidence = Real(
        symbol="1 - δ",
        default=0.95,
        above=0,
        below=1,
        meaning="confidence of the answer; larger takes longer",
    )
    aim = Choice(
        "identify",
        "earn",
        symbol="aim",
        default="identify",
        meaning="end with a sure answer, or never end and lose as little as possible",
    )
    window = Window()

    def _begin(self) -> None:
        self.elimination = self._track(Elimination(self._counts.wins))
        self.posterior = self._track(NormalPosterior(self._counts))
        self.out_at = -ln(1 - self.confidence)
        self.sure_at = nats(self.confidence, self.n_arms, "condorcet") + MARGIN
        self._in_flight: dict[tuple[int, int], int] = {}

    def _active(self, t: int) -> Booleans:
        """The arms that are in."""
        earned = ln(t) if self.aim == "earn" else 0.0
        active: Booleans = self.elimination.against < self.out_at + earned
        return active

    def _choose(self, t: int) -> tuple[int, int]:
        active = self._active(t)
        n_active = np.count_nonzero(active)
        if n_active == 1:
            return self._prove(active.argmax().item())
        return self._race(active) if n_active else self._search()

    def _duels_alone(self, arm: int, t: int, limit: int) -> int:
        """Until another arm comes back in: in a search, one at a time."""
        active = self._active(t)
        if np.count_nonzero(active) != 1:
            return 1
        if self.aim == "identify":
            return limit
        against = self.elimination.against.copy()
        against[arm] = np.inf
        least = against.min().item()
        steps = range(t + 1, t + limit)
        return 1 + bisect_left(steps, True, key=lambda step: least < self.out_at + ln(step))

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        if in_flight:
            self._in_flight[first, second] = in_flight
        else:
            self._in_flight.clear()

    def _race(self, active: Booleans) -> tuple[int, int]:
        """Leader and challenger among the arms that are in."""
        posterior, n_arms = self.posterior, self.n_arms
        draws = normal_draws(self._generator, 2 * n_arms)
        scores = posterior.score + posterior.score_deviation * draws[:n_arms]
        leader = np.where(active, scores, -1e9).argmax().item()
        chances = posterior.mean[leader] + posterior.deviation[leader] * draws[n_arms:]
        chances = np.where(active | (chances > 0.5), chances, -1e9)
        chances[leader] = -2e9
        return leader, chances.argmax().item()

    def _prove(self, arm: int) -> tuple[int, int]:
        """The sole arm, and the rival against which it has the least evidence."""
        if self.aim == "earn":
            return arm, arm
        evidence = self._evidence_for(arm)
        rival = evidence.argmin().item()
        if self.elimination.beats.item(arm, rival) >= self.sure_at and self._winner() == arm:
            return arm, arm
        return arm, rival

    def _evidence_for(self, arm: int) -> Floats:
        """(K,) the evidence that an arm beats each rival, with what duels in flight may bring."""
        known = self.elimination.beats[arm]
        evidence: Floats = np.where(known > 0, known, -self.posterior.mean[arm])
        evidence[arm] = np.inf
        for (first, second), n in self._in_flight.items():
            if arm in (first, second):
                rival = first + second - arm
                met = self._counts.wins.item(arm, rival) + self._counts.wins.item(rival, arm)
                evidence[rival] += n * max(evidence.item(rival), 1.0) / max(met, 1.0)
        return evidence

    def _search(self) -> tuple[int, int]:
        """A leader among the arms that may beat the most others, and the rival that may beat it."""
        posterior, n_arms = self.posterior, self.n_arms
        draws = normal_draws(self._generator, 2 * n_arms)
        sure = self.elimination.beats >= ln(self._counts.duels + 1)
        scores = posterior.score + posterior.score_deviation * draws[:n_arms]
        leader = np.where(possible_winners(sure), scores, -1.0).argmax().item()
        chances = posterior.mean[leader] + posterior.deviation[leader] * draws[n_arms:]
        chances = np.where(sure[leader] | sure[:, leader], 0.0, chances)
        chances[leader] = 0.5
        return leader, chances.argmax().item()

    def candidates(self) -> int:
        """How many arms may be the winner: those that are in, or may beat the most others."""
        n_active = int(np.count_nonzero(self._active(self._counts.duels + 1)))
        if n_active:
            return n_active
        sure = self.elimination.beats >= ln(self._counts.duels + 1)
        return int(np.count_nonzero(possible_winners(sure)))

    def _winner(self) -> int | None:
        """The arm that is left, once it surely beats all others."""
        active = self._active(self._counts.duels + 1)
        if self.aim == "earn" or np.count_nonzero(active) != 1:
            return None
        arm = active.argmax().item()
        evidence = self.elimination.beats[arm].copy()
        evidence[arm] = np.inf
        return arm if evidence.min() >= self.sure_at else None

    def _leader(self) -> int:
        """The arm that beats the most others in the counts, of those that are in."""
        active = self._active(self._counts.duels + 1)
        if self._recent is not None or not active.any():
            return super()._leader()
        return int(np.where(active, self._rank(), -1).argmax())


def possible_winners(sure: Booleans) -> Booleans:
    """The arms that may beat at least as many others as any arm surely does.

    Args:
        sure: (K, K), [i, j] is whether i surely beats j.

    Returns:
        (K,), at least one of them true.
    """
    most = len(sure) - 1 - np.count_nonzero(sure, axis=0)
    possible: Booleans = most >= np.count_nonzero(sure, axis=1).max()
    return possible
