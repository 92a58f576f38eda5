"""A model of a consumer group with static members."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


class Refused(Exception):  # noqa: N818 - the broker's verdict on one request
    """The broker refuses a request of a fenced producer or of a former member."""


class UnknownMember(Refused):
    """The member was removed from the group."""


class Displaced(Refused):
    """Another process has joined under the same name."""


@dataclass
class _Member:
    instance: str
    seen: int
    partitions: frozenset[int] = field(default_factory=frozenset)


class Group:
    """Members, generations and the assignment of partitions.

    A generation begins immediately when a member joins or is removed. Members learn of it when they
    next ask; until then they have the old generation, which commits are refused for. A process that
    joins under the name of a present member takes its place in the same generation.

    Args:
        partitions: the number of partitions.
        rng: draws the assignments; any is legal, so all are tried.
        session_ms: how long a member may be silent.
    """

    def __init__(self, partitions: int, rng: random.Random, session_ms: int) -> None:
        self._partitions = partitions
        self._rng = rng
        self._session_ms = session_ms
        self._members: dict[str, _Member] = {}
        self._joined = 0
        self._generation = 0

    def replace(self, partitions: int) -> None:
        """The topic is replaced by one with so many partitions; all members have left."""
        self._partitions = partitions
        self._members.clear()
        self._generation += 1

    def join(self, instance: str, now: int) -> str:
        """Join as a static member; returns the member id."""
        self._joined += 1
        member = f"{instance}#{self._joined}"
        for former, state in self._members.items():
            if state.instance == instance:
                del self._members[former]
                self._members[member] = _Member(instance, now, state.partitions)
                return member
        self._members[member] = _Member(instance, now)
        self._rebalance()
        return member

    def heartbeat(self, member: str, now: int) -> tuple[int, frozenset[int]]:
        """The present generation, and the partitions that it assigns to a member."""
        state = self._member(member)
        state.seen = now
        return self._generation, state.partitions

    def keep(self, instance: str, now: int) -> None:
        """A heartbeat of the client's own thread, which continues while the process is busy."""
        for state in self._members.values():
            if state.instance == instance:
                state.seen = now

    def check(self, member: str, generation: int) -> None:
        """Refuse an offset commit of a former member or generation; -1 passes, as on Kafka."""
        if generation == -1:
            return
        self._member(member)
        if generation != self._generation:
            raise Refused(f"generation {generation} is over, {self._generation} has begun")

    def _member(self, member: str) -> _Member:
        if member in self._members:
            return self._members[member]
        instance = member.partition("#")[0]
        if any(state.instance == instance for state in self._members.values()):
            raise Displaced(f"another process is '{instance}'")
        raise UnknownMember(f"'{member}' is no member")

    def expire(self, now: int) -> None:
        """Remove members that were silent for too long."""
        silent = [m for m, it in self._members.items() if now - it.seen > self._session_ms]
        for member in silent:
            del self._members[member]
        if silent:
            self._rebalance()

    def _rebalance(self) -> None:
        self._generation += 1
        if not self._members:
            return
        members = list(self._members.values())
        self._rng.shuffle(members)
        sticky = self._rng.random() < 0.5
        most = -(-self._partitions // len(members))
        held: dict[int, set[int]] = {}
        free = set(range(self._partitions))
        for index, member in enumerate(members):
            kept = sorted(member.partitions & free)[:most] if sticky else []
            held[index] = set(kept)
            free -= held[index]
        for partition in sorted(free):
            held[min(held, key=lambda index: (len(held[index]), index))].add(partition)
        for index, member in enumerate(members):
            member.partitions = frozenset(held[index])
