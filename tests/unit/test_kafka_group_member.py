"""When a member of a group opens its consumer again."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import errors

from streamduel_kafka.confluent.group_member import GroupMember


class Fenced:
    """A consumer that librdkafka has fenced, once it had lost its partitions or before."""

    def __init__(self, calls: list[str], *, lost: bool) -> None:
        self.calls, self.lost = calls, lost

    def subscribe(self, topic: str, _listener: Any) -> None:
        self.calls.append(f"subscribe {topic}")

    def poll(self, _seconds: float) -> Any:
        self.calls.append("poll")
        raise errors.FencedInstanceIdError

    def close(self) -> None:
        self.calls.append("close")


def test_one_that_lost_its_session_joins_again_as_soon_as_it_can() -> None:
    calls = list[str]()
    unused: Any = None
    opened = [Fenced(calls, lost=True), errors.KafkaTimeoutError(), Fenced(calls, lost=True)]

    def open_consumer(_seconds: float) -> Any:
        found = opened.pop(0)
        if isinstance(found, errors.KafkaError):
            raise found
        return found

    member = GroupMember(open_consumer, 30.0)
    member.subscribe("clicks", unused)
    with pytest.raises(errors.KafkaTimeoutError):
        member.poll(0.1)
    assert member.poll(0.1) == {}
    assert calls == ["subscribe clicks", "poll", "poll", "close", "subscribe clicks"]


def test_one_whose_name_another_process_took_ends() -> None:
    calls = list[str]()

    def open_consumer(_seconds: float) -> Any:
        return Fenced(calls, lost=False)

    unused: Any = None
    member = GroupMember(open_consumer, 30.0)
    member.subscribe("clicks", unused)
    with pytest.raises(errors.FencedInstanceIdError):
        member.poll(0.1)
    assert calls == ["subscribe clicks", "poll"]
