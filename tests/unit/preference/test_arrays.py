"""Positions of the largest value."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from streamduel.preference.arrays import places_of_largest


@given(
    st.lists(
        st.floats(allow_nan=False) | st.sampled_from([-np.inf, 0.0, 0.5, np.inf]),
        min_size=1,
        max_size=48,
    )
)
def test_all_positions_of_largest_value(listed: list[float]) -> None:
    values = np.array(listed)
    expected = [place for place, value in enumerate(listed) if value == max(listed)]
    assert places_of_largest(values) == expected
    assert values.tolist() == listed, "the values are not changed"
