"""Errors of librdkafka as those of kafka-python."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka import errors

from streamduel_kafka.confluent.failures import TransientError, translating
from streamduel_kafka.confluent.opening import Errors, await_cluster


def fenced() -> KafkaException:
    return KafkaException(KafkaError(KafkaError._FENCED, "a newer instance", fatal=True))


def test_an_error_has_the_class_of_its_code() -> None:
    with pytest.raises(errors.ProducerFencedError, match="a newer instance"), translating():
        raise fenced()


@pytest.mark.parametrize(("fatal", "kind"), [(False, TransientError), (True, errors.KafkaError)])
def test_an_error_of_a_newer_broker_is_fatal_if_librdkafka_says_so(
    fatal: bool, kind: type[errors.KafkaError]
) -> None:
    newer = KafkaError(9999, "not known yet", fatal=fatal)
    with pytest.raises(errors.KafkaError, match="not known yet") as caught, translating():
        raise KafkaException(newer)
    assert caught.type is kind
    assert caught.value.retriable is not fatal


@pytest.mark.parametrize("times", [1, 2])
def test_an_error_behind_those_of_callbacks_is_found(times: int) -> None:
    error: BaseException = fenced()
    for _ in range(times):
        hidden = SystemError("returned a result with an exception set")
        hidden.__cause__ = error
        error = hidden
    with pytest.raises(errors.ProducerFencedError, match="a newer instance"), translating():
        raise error


def test_another_error_of_python_stays_as_it_is() -> None:
    with pytest.raises(SystemError, match="of another kind"), translating():
        raise SystemError("of another kind") from ValueError()


def test_a_fatal_error_while_the_brokers_are_awaited_is_translated() -> None:
    class Away:
        def list_topics(self, *_: object, timeout: float) -> None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def serve() -> None:
        raise fenced()

    with pytest.raises(errors.ProducerFencedError, match="a newer instance"):
        await_cluster(Away(), Errors(), 10, serve)
