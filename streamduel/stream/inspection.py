"""Inspection: reports on the newest snapshots of a running or stopped service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from streamduel import policies
from streamduel.config.experiment import DESCRIPTIVE, ExperimentSettings
from streamduel.connector import Archive
from streamduel.preference.segments import Disagreement, SegmentResult, judge_segments
from streamduel.preference.verdict import PairResult, Verdict
from streamduel.records import Reason
from streamduel.stream import continuity, saved_state, snapshot, snapshot_reading
from streamduel.stream.client_sketch import ClientSketch
from streamduel.stream.segments import Segments
from streamduel.stream.tallies import Outcomes, PairTies
from streamduel.stream.timeline import Moment, Timeline


class ExperimentReport(msgspec.Struct, frozen=True):
    """One experiment as `streamduel inspect --json` prints it.

    Attributes:
        wins: wins[i][j] is the number of duels that arm i won against arm j; a tie counts half.
        open: the number of open impressions, and of pending clicks, which are in no tally yet.
        offset: the topic of the click log, the experiment's partition, and the next offset in it.
        state_hash: over the whole hard state; equal click logs give equal hashes.
        confidence: a lower bound, valid at any time, of the probability that the champion is the
            winner that the policy seeks.
        progress: how much of the evidence for a confidence of 95 % there is, from 0 to 1.
        decided: whether there is evidence for the champion, or for `no_winner`; without, people are
            shown "undecided".
        no_winner: whether surely no arm beats all others.
        unsurpassed: a lower bound, valid at any time, of the probability that no arm beats more
            others than the champion.
        margin: a difference in preference that does not matter.
        unbeaten: a lower bound, valid at any time, of the probability that no arm beats the
            champion by more than the margin; 0 without a margin.
        evidence: for each arm, that it does not beat all others, in nats.
        required: the evidence with which an arm is out.
        pairs: each pair, with 95 % intervals that hold together, at any time.
        timeline: what happened, the oldest first.
        prior: whether a prior steers the choices of its policy.
        configured: whether the configuration still has it.
        frozen_pair: the pair that is served whatever the policy wants, while the experiment runs;
            None if there is none.
        impressions_per_client: how many impressions the client of an impression has, on average;
            None if none names a client. If it is large, confidence may be too high.
        segments: what each segment says, by kind and name, with the confidence corrected for their
            number; empty without segments.
        disagreements: whether the segments of a kind disagree by more than chance, by kind.
        owner: from the configuration, as the next three.
    """

    arms: list[str]
    status: str
    policy: str
    epoch: int
    champion: str | None
    duels: int
    wins: list[list[float]]
    tallies: dict[str, int]
    open: dict[str, int]
    offset: dict[str, Any]
    state_hash: str
    confidence: float
    progress: float
    decided: bool
    no_winner: bool
    unsurpassed: float
    margin: float
    unbeaten: float
    evidence: list[float]
    required: float
    pairs: list[PairResult]
    timeline: list[Moment]
    prior: bool = False
    configured: bool = True
    frozen_pair: tuple[str, str] | None = None
    impressions_per_client: float | None = None
    segments: dict[str, dict[str, SegmentResult]] = {}
    disagreements: dict[str, Disagreement] = {}
    owner: str | None = None
    hypothesis: str | None = None
    links: list[str] = []
    notes: str | None = None


class Report(msgspec.Struct, frozen=True):
    """The newest snapshots of all partitions.

    Attributes:
        experiments: by name.
        dead_letters: by reason, of all partitions.
        ignored: ignored records of a foreign click log, by reason.
    """

    experiments: dict[str, ExperimentReport]
    dead_letters: dict[Reason, int]
    ignored: dict[str, int]


def inspect(archive: Archive, configured: Mapping[str, ExperimentSettings]) -> Report:
    """Read the newest snapshot of every partition.

    Args:
        archive: where the snapshots are.
        configured: the experiments of the configuration.

    Raises:
        SnapshotError: a snapshot cannot be read.
    """
    experiments: dict[str, ExperimentReport] = {}
    dead_letters: Counter[Reason] = Counter()
    ignored: Counter[str] = Counter()
    for _, (entry, saved_experiments, place) in snapshot_reading.newest(archive):
        dead_letters.update(entry.dead_letters)
        ignored.update(entry.ignored)
        for name, saved in saved_experiments.items():
            with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, place):
                saved_state.check(name, saved.state)
                report = _report(saved, entry)
                ended = name not in configured or saved.ended_at is not None
                told = {key: getattr(configured[name], key) for key in DESCRIPTIVE if not ended}
                experiments[name] = structs.replace(report, configured=not ended, **told)
    return Report(
        dict(sorted(experiments.items())),
        dict(sorted(dead_letters.items())),
        dict(sorted(ignored.items())),
    )


def _report(saved: snapshot.ExperimentEntry, entry: snapshot.PartitionEntry) -> ExperimentReport:
    state = saved.state
    plan, policy = state["plan"], policies.from_state(state["policy"])
    arms = state["arms"]
    champion = arms.index(plan["champion"]) if plan else policy.champion()
    ties = PairTies(len(arms), state.get("pair_ties", ())).matrix
    margin = policy.parameters.get("smallest_difference", 0.0)
    verdict = Verdict.of(policy.wins, ties.astype(float), champion, policy.seeks, margin=margin)
    settings = continuity.in_force(saved)
    segments = Segments(settings.segments, len(arms), **state.get("segments", {}))
    judged = judge_segments(*segments.copy(), arms)
    return ExperimentReport(
        arms=arms,
        status=plan["status"] if plan else state["status"],
        policy=settings.policy.name,
        epoch=state["assignment"]["epoch"],
        champion=plan["champion"] if plan else None,
        duels=policy.duels,
        wins=policy.wins.tolist(),
        tallies=structs.asdict(msgspec.convert(state["tallies"], Outcomes)),
        open=state["open"],
        offset={"topic": entry.topic, "partition": entry.partition, "next": entry.next},
        state_hash=saved_state.state_hash(state),
        confidence=verdict.confidence,
        progress=verdict.progress,
        decided=verdict.decided or verdict.no_winner,
        no_winner=verdict.no_winner,
        unsurpassed=verdict.unsurpassed,
        margin=verdict.margin,
        unbeaten=verdict.unbeaten,
        evidence=verdict.evidence.tolist(),
        required=verdict.required,
        pairs=list(verdict.pairs(arms)),
        timeline=list(Timeline(state.get("timeline")).moments),
        prior=policy.steered,
        frozen_pair=state["guardrails"]["frozen"],
        impressions_per_client=ClientSketch(state.get("clients")).per_client or None,
        segments=judged.segments,
        disagreements=judged.disagreements,
    )
