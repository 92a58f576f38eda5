"""Seeds are the same in every version, and different for different runs."""

from __future__ import annotations

from streamduel.simulation.seeds import arrangement, matrix_generator, run_seeds
from streamduel.simulation.settings import checkpoints


def test_no_two_runs_share_a_seed() -> None:
    seeds = [
        seed
        for whole in (0, 1, 2**32, 2**70)
        for run in range(20)
        for name in ("rucb", "ccb", "rmed1", "rmed2")
        for seed in run_seeds(whole, run, name)
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**128 for seed in seeds)


def test_seeds_do_not_depend_on_the_version_of_numpy() -> None:
    assert run_seeds(7, 3, "rucb") == (
        113363976816623119954588542078346870471,
        312818163553996884205268395659991417180,
        62596909504158398046061850823507816884,
    )


def test_arrangements_are_permutations_and_spread_the_first_arm() -> None:
    places = [arrangement(7, run, 4).index(0) for run in range(2000)]
    assert sorted(arrangement(7, 5, 30)) == list(range(30))
    for place in range(4):
        assert abs(places.count(place) - 500) < 4 * (2000 * 0.25 * 0.75) ** 0.5


def test_matrices_have_their_own_generator() -> None:
    words = {int(matrix_generator(7, name).words(1)[0]) for name in ("gaussian", "cyclic")}
    assert len(words) == 2


def test_checkpoints_are_distinct_end_at_the_horizon_and_hit_powers_of_ten() -> None:
    for horizon in (1, 2, 9, 10, 11, 999, 10**6, 123_456_789):
        for per_decade in (1, 10, 33):
            times = checkpoints(horizon, per_decade)
            assert times == sorted(set(times))
            assert (times[0], times[-1]) == (1, horizon)
            powers = [10**power for power in range(9) if 10**power <= horizon]
            assert set(powers) <= set(times)
    assert len([t for t in checkpoints(10**6) if 10**5 < t <= 10**6]) == 10
