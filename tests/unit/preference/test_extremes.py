"""Few numbers and many take two ways to the same places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.preference import extremes
from streamduel.preference.extremes import FEW, largest, largest_at, least_at

numbers = st.lists(
    st.floats(allow_nan=False) | st.sampled_from([-np.inf, 0.0, 0.5, np.inf]),
    min_size=1,
    max_size=3 * FEW,
)


@given(numbers)
def test_they_are_where_they_are(listed: list[float]) -> None:
    values = np.array(listed)
    most = max(listed)
    assert largest(values) == most
    assert least_at(values) == listed.index(min(listed))
    assert largest_at(values) == [place for place, it in enumerate(listed) if it == most]
    assert values.tolist() == listed, "as before in the end"


@given(numbers)
def test_both_ways_say_the_same(listed: list[float]) -> None:
    values = np.array(listed)
    said = []
    for few in (0, len(listed)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(extremes, "FEW", few)
            said.append((largest(values), largest_at(values), least_at(values)))
    assert said[0] == said[1]
