"""What to call the policies of a simulation in a table or a picture."""

from __future__ import annotations

from streamduel.simulation.settings import Settings


def labels(settings: Settings) -> list[str]:
    """Each policy's name, with the parameters that are not its defaults.

    Where a name is there several times, all that sets them apart is shown, defaults included.

    Args:
        settings: what is simulated.

    >>> p = [[0.5, 0.7], [0.3, 0.5]]
    >>> policies = [("rucb", {"alpha": 0.6}), ("rucb", {}), ("ccb", {}), ("c2b", {"rounds": 7})]
    >>> labels(Settings(p, policies, horizon=100, runs=1, seed=0))
    ['rucb (alpha=0.6)', 'rucb (alpha=0.51)', 'ccb', 'c2b (rounds=7)']
    """
    names = []
    for place, contestant in enumerate(settings.contestants):
        rivals = [other.params for other in settings.contestants if other.name == contestant.name]
        chosen = settings.chosen(place)
        own = [
            f"{key}={value}"
            for key, value in contestant.params.items()
            if key in chosen or any(params.get(key) != value for params in rivals)
        ]
        names.append(f"{contestant.name} ({', '.join(own)})" if own else contestant.name)
    return names
