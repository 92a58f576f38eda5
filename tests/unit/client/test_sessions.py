from streamduel.client.assignment import Draw
from streamduel.client.sessions import Sessions

OLD, NEW = Draw("a", "b", 1), Draw("a", "c", 2)


def test_time_counts_from_the_first_draw_however_busy_the_session() -> None:
    sessions = Sessions(seconds=10, most=5)
    assert sessions.hold(1, OLD, now=100) == OLD
    assert [sessions.hold(1, NEW, now=100 + wait) for wait in (3, 6, 9)] == [OLD] * 3
    assert sessions.hold(1, NEW, now=110) == NEW
    assert sessions.hold(1, OLD, now=119) == NEW


def test_sessions_do_not_know_one_another() -> None:
    sessions = Sessions(seconds=10, most=5)
    assert sessions.hold(1, OLD, now=0) == OLD
    assert sessions.hold(2, NEW, now=0) == NEW


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    sessions = Sessions(seconds=10, most=2)
    for session in (1, 2, 3):
        sessions.hold(session, OLD, now=session)
    assert sessions.hold(2, NEW, now=3) == OLD
    assert sessions.hold(3, NEW, now=3) == OLD
    assert sessions.hold(1, NEW, now=3) == NEW


def test_what_is_over_takes_no_memory() -> None:
    sessions = Sessions(seconds=10, most=1000)
    for session in range(100):
        sessions.hold(session, OLD, now=0)
    sessions.hold(7, NEW, now=10)
    assert len(sessions._held) == 1
