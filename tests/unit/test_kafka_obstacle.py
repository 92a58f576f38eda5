"""Why brokers that answer do not end a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kafka import errors

from streamduel_kafka import obstacle, transaction
from streamduel_kafka.client import Found
from streamduel_kafka.obstacle import NO_COORDINATOR, OFFSETS, TRANSACTIONS
from streamduel_kafka.transaction import Transactions

SETTINGS = {"client": "kafka-python", "bootstrap_servers": ["127.0.0.1:9"]}
WHOLE = Found(2, "id")
BEHIND = Found(2, "id", under_replicated={1: 1})


class Topics:
    """An admin client of a cluster in which all other topics are whole."""

    def __init__(self, found: Mapping[str, Found | Exception | None], least: str | None) -> None:
        self._found = found
        self._least = least

    def find(self, topic: str) -> Found | None:
        answer = self._found.get(topic, WHOLE)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def configs(self, _topic: str) -> dict[str, str] | None:
        return None if self._least is None else {"min.insync.replicas": self._least}

    def close(self) -> None: ...


FORBIDDEN = errors.TopicAuthorizationFailedError()
FEW = "partition 1 of 's' has fewer in-sync replicas than min.insync.replicas=2"
LOST = f"partition 0 of '{TRANSACTIONS}' has no leader"


@pytest.mark.parametrize(
    ("found", "least", "kind", "sentence"),
    [
        ({"s": BEHIND}, "2", errors.NotEnoughReplicasError, FEW),
        ({"s": BEHIND}, "1", None, ""),
        ({"s": BEHIND}, None, None, ""),  # this user may not see it
        ({"s": FORBIDDEN, TRANSACTIONS: FORBIDDEN}, "2", None, ""),
        ({TRANSACTIONS: Found(2, "id", None, [0])}, "2", errors.LeaderNotAvailableError, LOST),
        ({TRANSACTIONS: None}, "2", errors.CoordinatorNotAvailableError, NO_COORDINATOR),
    ],
)
def test_what_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, found: Any, least: str | None, kind: Any, sentence: str
) -> None:
    monkeypatch.setattr(obstacle, "connect", lambda *_: Topics(found, least))
    error = obstacle.obstacle(SETTINGS, ["s"])
    assert (type(error) if error else None, error.args[0] if error else "") == (kind, sentence)


@pytest.mark.parametrize(
    ("registered", "kind"), [(False, errors.CoordinatorNotAvailableError), (True, type(None))]
)
def test_a_registered_producer_has_a_coordinator(
    monkeypatch: pytest.MonkeyPatch, registered: bool, kind: type
) -> None:
    """This user may not see the topic of transactions."""
    monkeypatch.setattr(obstacle, "connect", lambda *_: Topics({TRANSACTIONS: None}, "2"))
    assert isinstance(obstacle.obstacle(SETTINGS, ["s"], registered=registered), kind)


@pytest.mark.parametrize(("group", "told"), [("g", OFFSETS), (None, "cannot be registered")])
def test_offsets_are_written_with_a_group_only(
    monkeypatch: pytest.MonkeyPatch, group: str | None, told: str
) -> None:
    found = {OFFSETS: Found(2, "id", None, [0])}
    monkeypatch.setattr(obstacle, "connect", lambda *_: Topics(found, "2"))
    monkeypatch.setattr(transaction, "connect", lambda *_: Unsettled(TIMED_OUT))
    with pytest.raises(errors.KafkaError, match=told) as raised:
        Transactions(SETTINGS, "streamduel-g-one", 60_000, group, topics=["s"]).settle()
    assert raised.value.__cause__ is TIMED_OUT


class Unsettled:
    """A producer that is not registered in time."""

    def __init__(self, error: errors.KafkaError) -> None:
        self._error = error

    def init_transactions(self, _seconds: float) -> None:
        raise self._error

    def discard(self) -> None: ...


TIMED_OUT = errors.KafkaTimeoutError("no answer within 15 s")
CONCURRENT = errors.ConcurrentTransactionsError()
UNKNOWN = "brokers answer, but 'streamduel-g-one' cannot be registered "
REFUSED = errors.TransactionalIdAuthorizationFailedError()


@pytest.mark.parametrize(
    ("error", "found", "told"),
    [
        (TIMED_OUT, {"s": BEHIND}, FEW),
        (CONCURRENT, {"s": BEHIND}, FEW),
        (errors.CoordinatorNotAvailableError(), {TRANSACTIONS: None}, NO_COORDINATOR),
        (TIMED_OUT, {}, f"{UNKNOWN}(KafkaTimeoutError: no answer within 15 s): "),
        (TIMED_OUT, {"s": TIMED_OUT}, "KafkaTimeoutError: no answer within 15 s"),
        (REFUSED, {"s": BEHIND}, "TransactionalIdAuthorizationFailedError"),
    ],
)
def test_a_producer_that_is_not_registered(
    monkeypatch: pytest.MonkeyPatch, error: errors.KafkaError, found: Any, told: str
) -> None:
    monkeypatch.setattr(obstacle, "connect", lambda *_: Topics(found, "2"))
    monkeypatch.setattr(transaction, "connect", lambda *_: Unsettled(error))
    transactions = Transactions(SETTINGS, "streamduel-g-one", 60_000, topics=["s"])
    with pytest.raises(errors.KafkaError) as raised:
        transactions.settle()
    assert told in str(raised.value)
