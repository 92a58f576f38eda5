"""What to call the policies of a simulation in a table or a picture."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.simulation.settings import Contestant


def labels(contestants: Sequence[Contestant]) -> list[str]:
    """Each policy's name, with what sets it apart from others of that name.

    Args:
        contestants: the policies.

    >>> labels([Contestant("rucb", {"alpha": 0.51}), Contestant("rucb", {"alpha": 0.6})])
    ['rucb (alpha=0.51)', 'rucb (alpha=0.6)']
    """
    names = []
    for contestant in contestants:
        rivals = [other.params for other in contestants if other.name == contestant.name]
        own = [
            f"{key}={value}"
            for key, value in contestant.params.items()
            if any(params[key] != value for params in rivals)
        ]
        names.append(f"{contestant.name} ({', '.join(own)})" if own else contestant.name)
    return names
