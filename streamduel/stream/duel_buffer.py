"""The duels of an experiment that its policy has not learned yet."""

from __future__ import annotations

from array import array

import numpy as np

from streamduel import policies
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import MAX_DUELS
from streamduel.records import Duels
from streamduel.stream.coding import FIRST_WINS, OUTCOMES, Coder
from streamduel.stream.decisions import Decisions
from streamduel.stream.tallies import DuelCounts, Outcomes


class DuelBuffer:
    """Buffers duels as small integers, so that a thousand are learned in a few array operations.

    The policy learns them in the order of the click log. The result is the same however often the
    buffer is emptied.

    Args:
        coder: what the codes mean.
        decisions: with the policy, and when a decision is due.
        counts: of the duels that the policy has learned.
        outcomes: of the records that have become duels.

    Attributes:
        codes: of the duels, see `Coder`.
        counted: how many of them are of impressions, which were counted as accepted on arrival.
        due: a decision is due when there are this many.
    """

    __slots__ = ("_coder", "_counts", "_decisions", "_outcomes", "codes", "counted", "due")

    def __init__(
        self, coder: Coder, decisions: Decisions, counts: DuelCounts, outcomes: Outcomes
    ) -> None:
        self._coder, self._decisions = coder, decisions
        self._counts, self._outcomes = counts, outcomes
        self.codes = array("q")
        self.counted = 0
        self.refresh_due()

    def __len__(self) -> int:
        """The number of buffered duels."""
        return len(self.codes)

    @property
    def room(self) -> int:
        """The number of duels until a decision is due."""
        return self.due - len(self.codes)

    @property
    def uncounted(self) -> int:
        """The number of buffered records that are not among the outcomes yet."""
        return len(self.codes) - self.counted

    def learn(self) -> None:
        """Let the policy learn the buffered duels."""
        buffered, policy = len(self.codes), self._decisions.policy
        if buffered == 0:
            return
        self._outcomes.accepted += self.uncounted
        self.counted = 0
        room = MAX_DUELS - policy.duels
        if buffered > room:
            del self.codes[room:]  # beyond it, a float64 cannot count one duel more
        if buffered == 1 and self.codes:  # a decision after every duel: faster without numpy
            code = self.codes.pop()
            pair, outcome = divmod(code, OUTCOMES)
            first, second = divmod(pair, policy.n_arms)
            self._decisions.observe(first, second, FIRST_WINS[outcome])
            self._counts.learned(first, second, code)
        else:
            self._learn_many(np.frombuffer(self.codes, np.int64))
            del self.codes[:]
        self._decisions.advance(buffered)
        self.refresh_due()

    def _learn_many(self, codes: Integers) -> None:
        firsts, seconds, outcomes = self._coder.by_code
        duels = policies.Duels(firsts[codes], seconds[codes], outcomes[codes])
        self._decisions.learn(duels)
        self._counts.learned_many(duels)

    def learn_counts(self, event: Duels, first: int, second: int, ties: int) -> None:
        """Let the policy learn the buffered duels, and then those of a `duels` record.

        Args:
            event: the record.
            first: the index of its arm `a`.
            second: the index of its arm `b`.
            ties: those that count; the record's, or none where ties are dropped.
        """
        self.learn()
        self._outcomes.accepted += 1
        self._counts.accepted_counts(event, first, second, ties)
        for first_wins, count in ((1.0, event.wins_a), (0.0, event.wins_b), (0.5, ties)):
            # A float64 cannot count more duels exactly.
            if 0 < count <= MAX_DUELS - self._decisions.policy.duels:
                self._decisions.observe(first, second, first_wins, count)
                self._counts.learned_counts(first, second, first_wins, count)
                self._decisions.advance(count)
        self.refresh_due()

    def refresh_due(self) -> None:
        """Take over when the next decision is due; call it after each decision, too."""
        self.due = self._decisions.until_due
