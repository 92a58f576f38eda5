"""Top-two Thompson sampling with elimination by wagers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

import numpy as np

from streamduel.errors import ParameterError
from streamduel.policies.base.normal_posterior import NormalDraws, NormalPosterior
from streamduel.policies.base.parameter import Choice, Real, Whole
from streamduel.policies.base.prior import MAX_WINS, ArmWins
from streamduel.policies.base.windowed_policy import Window, WindowedPolicy
from streamduel.preference.arrays import Booleans, Floats
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.elimination import NO_MARKS, Elimination, Marks, marks_of
from streamduel.preference.evidence import nats
from streamduel.preference.logarithm import ln
from streamduel.preference.verdict import percent
from streamduel.preference.winners import score_bounds

MARGIN: Final = 1e-9
"""Nats beyond what the confidence needs, so that rounding cannot leave it just below."""

LOW: Final = -1.0
LOWEST: Final = -2.0
"""Below every draw of a preference."""


class TopTwo(WindowedPolicy):
    """Names the Condorcet winner with a confidence that is valid at any time, and soon.

    An experimenter waits for an answer: the champion, or that there is none, with 95 % confidence.
    Policies for little regret answer late or never: once the champion is likely to be the winner,
    they compare it with itself, which gives no evidence.

    1. Race. An arm w is in until the wager against "w beats all others" has won 1/δ
       (`Elimination`). The leader L is the arm with the largest draw of its Copeland score among
       those that are in. The challenger is the arm with the largest draw of θ_jL among those that
       L does not surely beat yet. L never duels with itself, which would give no evidence.
    2. Answer. An arm that surely beats each other one is the winner (`error_of` has what that
       needs); it is `finished`, and the winner duels with itself. This assumes nothing.
    3. Search. If all arms are out, surely none beats all others, which is an answer, too. The
       policy then looks for a Copeland winner: L is drawn among the arms that may still beat more
       others than any arm surely does; its challenger has the largest draw of θ_jL among the arms j
       whose pair with L is undecided. If that draw is below 1/2, L would mostly prove which arms it
       beats, and only the arm with the largest expected score needs such a proof: that arm replaces
       L. The policy is `finished` when there is no such L; a union over all pairs makes this sure.

    With `aim` "earn" it never finishes: δ is 1/t, and L may duel with itself, with θ_LL = 1/2. That
    has less regret where rankers are close (in 10⁵ duels below some 3 %), else mostly more.

    Everything follows from the counts and from draws, so delayed and unproposed duels count like
    all others, and random draws spread the duels in flight.

    With a `prior` the draws start from its leads, until the duels contradict it (`Belief`). It only
    steers choices: the wagers, the champion and the answer's confidence count duels alone.

    Choose it unless there is a reason for another one: it needs no horizon, decides fast with any
    number of arms, and ends with an answer.

    Draws from the generator, unless it has finished: normal draws (`NormalDraws`), K of scores,
    then K of preferences.

    Args:
        smallest_difference: ε; a rival that is better by less does not matter. An arm that surely
            none beats by ε is then an answer, too, so that equal best rankers do not compete
            without end. If each is beaten by more, the search counts all differences.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = TopTwo(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), policy.finished, int(policy.wins.sum())
    (0, 1, True, 102)

    Source: our own (docs/research); the leader and challenger after D. Russo, "Simple Bayesian
    algorithms for best-arm identification", Operations Research 68(6), 2020 (top-two Thompson
    sampling), and Wu and Liu, "Double Thompson Sampling for Dueling Bandits", NIPS 2016.
    """

    name = "top_two"
    summary = "finds the winner soon, and tells with what confidence; needs no horizon"
    paper = "our own, after Russo, Simple Bayesian Algorithms for Best-Arm Identification, 2020"
    seeks = "condorcet"
    settles_for_copeland = True
    final = False

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
    smallest_difference = Real(
        symbol="ε",
        default=0.0,
        at_least=0,
        below=0.5,
        meaning="a difference in preference that does not matter",
    )
    min_duels = Whole(
        symbol="n", default=0, at_least=0, meaning="duels before which it does not finish"
    )
    window = Window()
    prior = ArmWins(
        MAX_WINS,
        symbol="N",
        meaning="pseudo-wins of each arm over each other one, known before; they only steer"
        " choices",
    )
    prior_from = ArmWins(
        MAX_DUELS,
        symbol="W'",
        meaning="wins before the prior was stated, as it is when an arm joins that is like"
        " another one",
    )

    @classmethod
    def check_parameters(cls, given: Mapping[str, object], n_arms: int = 2) -> dict[str, Any]:
        """As `Policy.check_parameters`; there is no `prior` with `aim` "earn"."""
        values = super().check_parameters(given, n_arms)
        if "prior" in values and values["aim"] == "earn":
            raise ParameterError(
                "prior",
                "must be left out with aim 'earn': the arm that a wrong prior favours would meet"
                " itself, and nothing would refute it.",
            )
        return values

    def _begin(self) -> None:
        self.out_at = -ln(1 - self.confidence)
        self.sure_at = nats(self.confidence, self.n_arms, "condorcet") + MARGIN
        if self.smallest_difference:  # of a pair, neither arm may be worse: a union over all arms
            self.sure_at = self.out_at + ln(self.n_arms) + MARGIN
        self.most_at = nats(self.confidence, self.n_arms, "copeland") + MARGIN
        earns = self._earns = self.aim == "earn"
        self._least = self.min_duels - (self.duels - self._counts.duels)  # a window forgets
        lines = (0.0, 0.0, 0.0) if earns else (self.out_at, self.sure_at, self.most_at)
        self.elimination = self._track(
            Elimination(self._counts.wins, self.smallest_difference, lines, rising=earns)
        )
        self.posterior = self._track(NormalPosterior(self._counts, self.prior, self.prior_from))
        self._draws = NormalDraws(2 * self.n_arms)
        self._known_at = -1
        self._known: int | None = None
        self._led = (-1, NO_MARKS, 0)

    @property
    def steered(self) -> bool:
        """As `Policy.steered`: the prior is believed."""
        belief = self.posterior.belief
        return belief is not None and belief.holds

    def _out(self, t: int) -> Marks:
        """The arms that are out."""
        return self.elimination.out(ln(t) if self._earns else self.out_at)

    def _choose(self, t: int) -> tuple[int, int]:
        winner = self._winner()
        if winner is not None:
            return winner, winner
        if self._earns:
            line = ln(t)
            self.elimination.set_lines(line, line, line)
        else:
            line = self.out_at
        out = self.elimination.out(line)
        return self._search(t) if out.number == self.n_arms else self._race(out, t)

    def _enough(self, evidence: float, t: int) -> float:
        """The evidence that decides a pair, where the answer needs `evidence`."""
        if self._earns:
            return ln(t)
        return evidence if t > self._least else inf

    def _race(self, out: Marks, t: int) -> tuple[int, int]:
        """A leader among the arms that are in, and a rival that it does not surely beat."""
        leader, draws = self._draw(out)
        decided = self.elimination.surely_beaten(leader, self._enough(self.sure_at, t))
        return leader, self._rival(leader, draws, decided)[0]

    def _search(self, t: int) -> tuple[int, int]:
        """A leader among the arms that may beat the most others, and a rival that may beat it."""
        sure = self.elimination.beats >= self._enough(self.most_at, t)
        decided = sure | sure.T
        leaders = possible_winners(sure) if self._earns else possible_improvers(sure)
        leader, draws = self._draw(marks_of(~leaders))
        rival, chance = self._rival(leader, draws, marks_of(decided[leader]))
        if chance < 0.5:  # never with `aim` "earn"
            best = int(self.posterior.score.argmax())
            other, chance = self._rival(best, draws, marks_of(decided[best]))
            if chance > LOW:
                return best, other
        return leader, rival

    def _rival(self, leader: int, draws: Floats, decided: Marks) -> tuple[int, float]:
        """The arm with the largest draw against the leader, and the draw.

        With the aim to earn, the leader itself is a rival, too.
        """
        posterior = self.posterior
        chances = posterior.deviation[leader] * draws
        chances += posterior.mean[leader]
        if decided.number:
            chances[decided.marks] = LOW
        chances[leader] = 0.5 if self._earns else LOWEST
        rival = int(chances.argmax())
        return rival, chances.item(rival)

    def _draw(self, out: Marks) -> tuple[int, Floats]:
        """One of the other arms with the largest draw of its score, and a normal draw for each."""
        draws = self._draws.take(self._generator)
        posterior = self.posterior
        scores = posterior.score_deviation * draws[: self.n_arms]
        scores += posterior.score
        if out.number:
            scores[out.marks] = -inf
        return int(scores.argmax()), draws[self.n_arms :]

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: by scores, samples and evidence."""
        self.elimination.settle()
        score, out = self.posterior.score, self._out(self._counts.duels + 1)
        # Once all arms are out, only pairs that are surely won count.
        evidence, claim = self.elimination.beats, "better"
        if out.number < self.n_arms and self.smallest_difference:
            evidence = self.elimination.safe
            claim = f"not worse by {self.smallest_difference:g}"
        # The arms that are out come last; both arms of the pair may have been drawn as leader.
        standing = score - self.n_arms * out.marks
        leader, rival = (first, second) if standing[first] >= standing[second] else (second, first)
        leads = "leads" if standing[leader] == standing.max() else "was drawn as a possible winner"
        required = self.sure_at if self.aim == "identify" else ln(self._counts.duels + 1)
        chance, deviation = (
            values.item(leader, rival) for values in (self.posterior.mean, self.posterior.deviation)
        )
        return (
            f"{arms[leader]} {leads}, expected to beat {score.item(leader):.1f} of "
            f"{self.n_arms - 1} others; {arms[rival]} was drawn as the rival that may still beat "
            f"it, with {percent(chance)} ± {percent(deviation)} of their duels. Of "
            f"{required:.1f} nats that prove {arms[leader]} {claim}, "
            f"{max(0.0, evidence.item(leader, rival)):.1f} are there."
        )

    def candidates(self) -> int:
        """How many arms may be the winner: those that are in, or may beat the most others."""
        if self._winner() is not None:
            return 1
        t = self._counts.duels + 1
        n_in = self.n_arms - self._out(t).number
        if n_in:
            return n_in
        leaders = possible_winners(self.elimination.beats >= self._enough(self.most_at, t))
        return int(np.count_nonzero(leaders))

    def _winner(self) -> int | None:
        """The arm that surely beats all others, or is beaten by none; else surely the most."""
        if self._earns or self._counts.duels < self._least:
            return None
        if self._known_at != self.elimination.turns:
            self._known_at, self._known = self.elimination.turns, self._sure_winner()
        return self._known

    def _sure_winner(self) -> int | None:
        others = self.n_arms - 1
        # With a smallest difference several arms may be sure, also one that beats few others.
        if self.smallest_difference or self._counts.beats.max() == others:
            won, _ = score_bounds(self.elimination.safe >= self.sure_at)
            if won.max() == others:
                return int(np.where(won == others, self._rank(), -1).argmax())
        if self.elimination.out(self.out_at).number < self.n_arms:
            return None
        won, most = score_bounds(self.elimination.beats >= self.most_at)
        if most.max() > won.max():
            return None
        # Of several winners, the one with the largest priority: it stays the same.
        return int(np.where(won == won.max(), self._priority, -1).argmax())

    def _leader(self) -> int:
        """The arm that beats the most others in the counts, of those that are in."""
        out = self._out(self._counts.duels + 1)
        if self._recent is not None or not 0 < out.number < self.n_arms:
            return super()._leader()
        turn, marks, leader = self._led
        if turn != self._counts.turns or marks is not out:
            leader = int(np.where(out.marks, -1, self._rank()).argmax())
            self._led = self._counts.turns, out, leader
        return leader


def possible_winners(sure: Booleans) -> Booleans:
    """The arms that may beat at least as many others as any arm surely does.

    Args:
        sure: (K, K), [i, j] is whether i surely beats j.

    Returns:
        (K,), at least one of them true.
    """
    least, most = score_bounds(sure)
    possible: Booleans = most >= least.max()
    return possible


def possible_improvers(sure: Booleans) -> Booleans:
    """The arms that may beat more others than any arm surely does; none once that is decided."""
    least, most = score_bounds(sure)
    possible: Booleans = most > least.max()
    return possible
