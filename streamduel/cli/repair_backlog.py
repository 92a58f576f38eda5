"""Warnings of `streamduel repair repartition`: records that the service has not folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple

from streamduel.cli.repair_opening import gain
from streamduel.config import LoadedConfig
from streamduel.connector import Source
from streamduel.errors import ConnectorError, counted
from streamduel.stream import control_order
from streamduel.stream.repair_commits import Move


class _Place(NamedTuple):
    """The first offset of a topic that is not folded, and the topic's id."""

    topic: str | None
    log_id: str | None
    next: int


def unfolded(move: Move, log: Source, before: LoadedConfig) -> list[str]:
    """A warning for each partition whose last records are not folded yet.

    Args:
        move: from the former click log to the present one.
        log: the present one; its partitions have been gained.
        before: the former configuration.
    """
    sentences = []
    left = {}
    for partition, saved in move.saved.items():
        if not move.continues(partition):
            left[partition] = saved.partition
        elif partition < log.partitions and (lag := _lag(log, partition, saved.partition.next)):
            sentences.append(
                f"Warning: {counted(lag, 'record')} of partition {partition} not folded yet; "
                f"those of experiments that move become dead letters (wrong_partition). To "
                f"fold them first, run the service before the topic is repartitioned."
            )
    if not left or before.read_once:
        return sentences
    clicks = {n: _Place(it.topic, it.log_id, it.next) for n, it in left.items()}
    if before.config.control_topic is None:
        return [*sentences, *_left_behind(before.open_log, clicks)]
    controls = {
        n: _Place(it.control.topic, it.control.log_id, it.control.next)
        for n, it in left.items()
        if it.control is not None
    }
    return [
        *sentences,
        *_left_behind(lambda: before.open_log(control_topic=None), clicks),
        *_left_behind(before.open_controls, controls),
    ]


def _left_behind(opened: Callable[[], Source], places: Mapping[int, _Place]) -> list[str]:
    """A warning for each partition that does not continue and has records that are not folded."""
    sentences = []
    try:
        with closing(opened()) as log:
            gain(log)
            for partition, place in places.items():
                same = partition < log.partitions and place.topic == log.topic
                if not same or control_order.differ(place.log_id, log.log_id(partition)):
                    continue  # its offsets are of another log
                if lag := _lag(log, partition, place.next):
                    sentences.append(
                        f"Warning: {counted(lag, 'record')} of partition {partition} of "
                        f"'{log.topic}' not folded yet; after the move they never are. To fold "
                        f"them first, run the service with the former configuration."
                    )
    except ConnectorError as error:
        sentences.append(f"Warning: whether all former records are folded is unknown: {error}")
    return sentences


def _lag(log: Source, partition: int, following: int) -> int:
    log.seek(partition, following)
    return log.lags([partition]).get(partition, 0)
