"""Statistics and examples of the impressions of an experiment; no decision uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.config.experiment import ExperimentSettings
from streamduel.records import Impression, Interleaving
from streamduel.stream.client_sketch import ClientSketch
from streamduel.stream.conformance import Conformance
from streamduel.stream.examples import Examples
from streamduel.stream.partition_context import PartitionContext


class Impressions:
    """Counts and examples of the impressions of an experiment.

    Args:
        settings: of the experiment.
        context: of the partition.
        state: a former `state()`; None for a new experiment.

    Attributes:
        conformance: counts that show whether ranker services interleave as assigned.
        clients: how many impressions a client has.
        examples: impressions to look at.
    """

    __slots__ = ("clients", "conformance", "examples")

    def __init__(
        self,
        settings: ExperimentSettings,
        context: PartitionContext,
        state: Mapping[str, Any] | None,
    ) -> None:
        saved = state or {}
        self.conformance = Conformance(
            context.team_patterns,
            saved.get("trust"),
            saved.get("unjudged"),
            tells_ranks=context.tells_ranks,
        )
        self.clients = ClientSketch(saved.get("clients"))
        self.examples = Examples(settings.examples, saved.get("examples"))

    def count(self, event: Impression | Interleaving, now: int) -> None:
        """Count one impression that is no duplicate.

        Args:
            event: the impression.
            now: stream time.
        """
        self.conformance.shown(event.a, event.b, event.teams, event.epoch, now)
        if event.client is not None:
            self.clients.add(event.client)

    def count_many(self, events: Sequence[Interleaving], times: Sequence[int], now: int) -> None:
        """As `count` for each of them, while stream time follows their timestamps.

        Args:
            events: the impressions.
            times: their timestamps, none beyond the limit of stream time.
            now: stream time before them.
        """
        shown, add = self.conformance.shown, self.clients.add
        for event, time in zip(events, times, strict=True):
            now = max(now, time)
            shown(event.a, event.b, event.teams, event.epoch, now)
            if event.client is not None:
                add(event.client)

    def reset(self, settings: ExperimentSettings) -> None:
        """Forget the clients, the examples, and how services interleaved."""
        self.conformance.reset()
        self.clients, self.examples = ClientSketch(), Examples(settings.examples)

    def retire_arm(self, arm: str) -> None:
        """Forget an arm."""
        self.conformance.retire_arm(arm)
        self.examples.retire_arm(arm)

    def state(self) -> dict[str, Any]:
        """What the hard state contains."""
        clients, examples = self.clients.state(), self.examples.state()
        unjudged = self.conformance.unjudged
        return {
            "trust": self.conformance.state(),
            **({"examples": examples} if examples else {}),
            **({"clients": clients} if clients else {}),
            **({"unjudged": unjudged} if unjudged else {}),
        }
