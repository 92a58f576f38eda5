"""Who is to be woken when: stream times at which experiments have something to do."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from streamduel.stream.batch_clock import NEVER

_STALE: Final = 4
"""The heap is cleared when it holds so many times more than there are experiments: then most of it
was set anew since. Amortised, setting an alarm stays O(log n)."""


class Alarms:
    """One stream time for each experiment; a thousand of them cost no more to watch than one.

    Attributes:
        next: the earliest; when stream time reaches it, ask `due`.

    >>> alarms = Alarms()
    >>> alarms.set("search", 500)
    >>> alarms.set("ads", 300)
    >>> alarms.next, alarms.due(499), alarms.due(500)
    (300, ['ads'], ['ads', 'search'])
    >>> alarms.set("ads", 900)
    >>> alarms.next
    500
    """

    __slots__ = ("_at", "_heap", "next")

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self.next = NEVER

    def set(self, name: str, at: int) -> None:
        """Set an experiment's alarm, in the place of what it was."""
        if at == self._at.get(name, NEVER):
            return
        self._at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > _STALE * len(self._at):
            self._heap = [(at, name) for name, at in self._at.items()]
            heapify(self._heap)
        while self._at[self._heap[0][1]] != self._heap[0][0]:
            heappop(self._heap)
        self.next = self._heap[0][0]

    def due(self, now: int) -> list[str]:
        """Whose time has come, by name, for equal bytes."""
        found = set()
        places = [0]
        for place in places:  # it grows: below an entry of the heap stand those that come later
            if place < len(self._heap) and self._heap[place][0] <= now:
                at, name = self._heap[place]
                if self._at[name] == at:
                    found.add(name)
                places += (2 * place + 1, 2 * place + 2)
        return sorted(found)
