import pytest

from streamduel.client.stable import stable_fraction, stable_number


def test_it_is_blake2b_of_the_parts_as_json() -> None:
    # printf '["search",17,"session 1"]' | b2sum -l 64
    assert stable_number("search", 17, "session 1") == 0x1C4CCE69BA75E537


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab", "c"), ("a", "bc")), (("a", "b"), ("b", "a")), (("1",), (1,)), ((None,), ("",))],
)
def test_neither_borders_nor_order_nor_kind_are_lost(
    one: tuple[str | int | None, ...], other: tuple[str | int | None, ...]
) -> None:
    assert stable_number(*one) != stable_number(*other)


def test_any_text_will_do() -> None:
    assert 0 <= stable_number("\ud800", "Größe", "", "\0", size=16) < 2**128


def test_a_fraction_is_the_numbers_upper_part() -> None:
    fraction = stable_fraction("search", 17, "session 1")
    assert fraction == (stable_number("search", 17, "session 1") >> 11) / 2**53
    assert 0 <= fraction < 1
