"""The cap per client: how many duels of one client an experiment counts per dedupe window."""

from __future__ import annotations

from collections import deque
from typing import Final

from streamduel.records import Click, Control, Duels, InputEvent
from streamduel.stream.dedupe import DedupeWindow, record_key

DOMINATED: Final = 0.05
"""The share of the records, from a few clients that have very many, from which on they are worth a
look, as in the alert: a few users search all day."""


class _Client:
    """A client and the number of its duels in the dedupe window."""

    __slots__ = ("duels", "key")

    def __init__(self, key: int) -> None:
        self.key = key
        self.duels = 0


class ClientDuels:
    """The duels of clients in the dedupe window, of all experiments of a partition.

    Args:
        window: the partition's dedupe window.
    """

    __slots__ = ("_clients", "_queue", "_window")

    def __init__(self, window: DedupeWindow) -> None:
        self._window = window
        self._clients: dict[int, _Client] = {}
        # The oldest first: the number of the entry in the dedupe window, client and duels.
        self._queue: deque[tuple[int, _Client, int]] = deque()

    def __len__(self) -> int:
        """The number of entries of the dedupe window with a client."""
        return len(self._queue)

    def add(self, key: int, duels: int) -> int:
        """Count the duels of an event that enters the dedupe window next.

        Args:
            key: of its client; each experiment has its own seed for them.
            duels: how many.

        Returns:
            The duels of the client with them.
        """
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client(key)
        client.duels += duels
        self._queue.append((self._window.added, client, duels))
        return client.duels

    def forget(self) -> None:
        """Forget what the dedupe window has forgotten."""
        oldest = self._window.oldest
        while self._queue and self._queue[0][0] < oldest:
            _, client, duels = self._queue.popleft()
            client.duels -= duels
            if client.duels == 0:
                del self._clients[client.key]


class ClientCap:
    """Decides which records exceed the cap of their client.

    A record is capped if its client would have more than `limit` duels in the dedupe window with
    it. Every duel that the window remembers counts, also those of duplicates and of capped records:
    so the verdict is a function of the records in the window, and a restart that rebuilds the
    window rebuilds it, too. A client that stays above the limit is therefore not counted until it
    slows down.

    Impressions, interleavings and duels count one duel each, `duels` their sum; clicks count none.
    A record in the window takes about 60 bytes, and a client another 250.

    Args:
        limit: the most duels of one client in the dedupe window.
        seed: of the clients' keys.
        client_duels: of the partition.
    """

    __slots__ = ("_client_duels", "_limit", "_seed")

    def __init__(self, limit: int, seed: int, client_duels: ClientDuels) -> None:
        self._limit = limit
        self._seed = seed
        self._client_duels = client_duels

    def count(self, event: InputEvent) -> bool:
        """Count an event that enters the dedupe window next; True if it exceeds the cap."""
        if event.client is None or isinstance(event, Click | Control):
            return False
        self._client_duels.forget()
        duels = event.wins_a + event.wins_b + event.ties if isinstance(event, Duels) else 1
        return self._client_duels.add(record_key(event.client, self._seed), duels) > self._limit
