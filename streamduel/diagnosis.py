"""What `streamduel doctor` and the connectors find out, as findings for people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

Grade = Literal["fine", "warning", "failed", "unknown"]


class Finding(NamedTuple):
    """The result of one check of `streamduel doctor`.

    Attributes:
        name: what was checked.
        verdict: `failed` if the service would not work, `warning` if it might not do as wanted.
        sentence: what was found and, if it is not fine, what to do.
    """

    name: str
    verdict: Grade
    sentence: str


class CommittedOffset(NamedTuple):
    """Where a source continues that keeps this itself, besides the snapshots.

    Attributes:
        next: the first offset that is not folded.
        is_own: whether a commit of the service wrote it, and nobody has set it since.
    """

    next: int
    is_own: bool


class Diagnosis(NamedTuple):
    """What a connector finds out about its settings.

    Attributes:
        findings: in the order in which people should read them.
        elsewhere: values of some newest records of logs that are not configured, by their name:
            a service may write to the wrong one.
        committed: where the click log is continued, by partition; empty if only snapshots say so.
        reachable: whether the click log and its snapshots can be asked for at all; if not, nothing
            more is checked.
    """

    findings: Sequence[Finding]
    elsewhere: Mapping[str, Sequence[bytes]] = MappingProxyType({})
    committed: Mapping[int, CommittedOffset] = MappingProxyType({})
    reachable: bool = True
