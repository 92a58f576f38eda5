import pytest

from streamduel.client.assignment import Draw, Sessions, stable_fraction, stable_number

OLD, NEW = Draw("a", "b", 1), Draw("a", "c", 2)


def test_a_session_expires_after_its_first_draw() -> None:
    sessions = Sessions(seconds=10, capacity=5)
    assert sessions.hold(1, OLD, now=100) == OLD
    assert [sessions.hold(1, NEW, now=100 + wait) for wait in (3, 6, 9)] == [OLD] * 3
    assert sessions.hold(1, NEW, now=110) == NEW
    assert sessions.hold(1, OLD, now=119) == NEW


def test_sessions_are_independent() -> None:
    sessions = Sessions(seconds=10, capacity=5)
    assert sessions.hold(1, OLD, now=0) == OLD
    assert sessions.hold(2, NEW, now=0) == NEW


def test_the_oldest_session_is_evicted_at_capacity() -> None:
    sessions = Sessions(seconds=10, capacity=2)
    for session in (1, 2, 3):
        sessions.hold(session, OLD, now=session)
    assert sessions.hold(2, NEW, now=3) == OLD
    assert sessions.hold(3, NEW, now=3) == OLD
    assert sessions.hold(1, NEW, now=3) == NEW


def test_expired_sessions_take_no_memory() -> None:
    sessions = Sessions(seconds=10, capacity=1000)
    for session in range(100):
        sessions.hold(session, OLD, now=0)
    sessions.hold(7, NEW, now=10)
    assert len(sessions._held) == 1


def test_the_number_is_blake2b_of_the_parts_as_json() -> None:
    # printf '["search",17,"session 1"]' | b2sum -l 64
    assert stable_number("search", 17, "session 1") == 0x1C4CCE69BA75E537


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab", "c"), ("a", "bc")), (("a", "b"), ("b", "a")), (("1",), (1,)), ((None,), ("",))],
)
def test_borders_order_and_types_of_parts_matter(
    one: tuple[str | int | None, ...], other: tuple[str | int | None, ...]
) -> None:
    assert stable_number(*one) != stable_number(*other)


def test_any_text_is_allowed() -> None:
    assert 0 <= stable_number("\ud800", "Größe", "", "\0", size=16) < 2**128


def test_the_fraction_is_the_upper_part_of_the_number() -> None:
    fraction = stable_fraction("search", 17, "session 1")
    assert fraction == (stable_number("search", 17, "session 1") >> 11) / 2**53
    assert 0 <= fraction < 1
