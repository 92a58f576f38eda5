import msgspec
import pytest

from streamduel.client.assignment import Assignment, CurrentAssignment, Draw, stable_fraction
from tests.unit.client.bed import record


def known(text: str) -> CurrentAssignment:
    return CurrentAssignment(msgspec.json.decode(text, type=Assignment), 0.0)


def test_a_fraction_selects_a_pair_by_the_cumulative_shares() -> None:
    plan = known(record(3, {("x", "y"): 0.5, ("x", "z"): 0.25, ("z", "z"): 0.25}))
    expected = {
        0.0: ("x", "y"), 0.24: ("x", "y"), 0.25: ("y", "x"), 0.49: ("y", "x"),
        0.5: ("x", "z"), 0.62: ("x", "z"), 0.625: ("z", "x"), 0.74: ("z", "x"),
        0.75: ("z", "z"), 0.99: ("z", "z"),
    }  # fmt: skip
    assert {fraction: plan.draw(fraction)[:2] for fraction in expected} == expected


def test_shares_need_not_sum_to_one() -> None:
    shares = {("x", "y"): 0.1, ("x", "z"): 0.1, ("y", "z"): 0.1 + 2e-16}
    assert known(record(3, shares)).draw(1 - 2**-53) == Draw("z", "y", 3)
    assert known(record(3, {("x", "x"): 1.0000000000000002})).draw(0.5) == Draw("x", "x", 3)


def test_pairs_are_drawn_with_their_shares_in_either_order() -> None:
    shares = {("a", "b"): 0.5, ("a", "c"): 0.3, ("b", "c"): 0.15, ("a", "a"): 0.05}
    plan, keys = known(record(9, shares)), 20_000
    drawn = [plan.draw(stable_fraction("search", 9, f"session {n}"))[:2] for n in range(keys)]
    for (a, b), share in shares.items():
        orders = {(a, b), (b, a)}
        for order in orders:
            of_order = share / len(orders)
            # A binomial count: five standard deviations, once in 1.7 million for each of the seven.
            allowed = 5 * (keys * of_order * (1 - of_order)) ** 0.5
            assert abs(drawn.count(order) - keys * of_order) < allowed


def test_unknown_fields_are_ignored_and_most_fields_are_optional() -> None:
    text = (
        '{"experiment": "search", "epoch": 1, "champion": "x", "news": [1],'
        ' "pairs": [{"a": "x", "b": "x", "share": 1, "note": "new"}], "status": "thawing"}'
    )
    assert known(text).draw(0.3) == Draw("x", "x", 1)


@pytest.mark.parametrize(
    "change",
    [{"type": "dead_letter"}, {"pairs": {}}, {"epoch": 0}, {"epoch": "1"}, {"experiment": ""}],
)
def test_invalid_assignments_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        known(record(**change))  # type: ignore[arg-type]


def test_the_fallback_applies_from_valid_until_on() -> None:
    plan = known(record(4, valid_until=1_790_000_000_500, fallback="bm25"))
    assert plan.fallback(1_790_000_000.4) is None
    assert plan.fallback(1_790_000_000.5) == Draw("bm25", "bm25", 4)


def test_the_default_fallback_is_the_champion() -> None:
    assert known(record(4, valid_until=0)).fallback(1.0) == Draw("ltr", "ltr", 4)


def test_without_valid_until_an_assignment_does_not_expire() -> None:
    assert known(record(fallback="bm25")).fallback(4e9) is None


def test_a_draw_of_one_ranker_is_alone() -> None:
    assert Draw("x", "x").alone
    assert not Draw("x", "y", 3).alone
