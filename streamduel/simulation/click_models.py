"""Click models: how simulated users click on a ranked list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from streamduel.errors import ConfigurationError, nearest
from streamduel.policies.base.generator import Generator
from streamduel.simulation.environment import RESOLUTION

GRADES: Final = 5
"""Relevance is graded from 0, irrelevant, to 4, perfect."""


@dataclass(frozen=True)
class ClickModel:
    """The dependent click model: a user reads from the top, and may stop after a click.

    At each rank, a document of grade g is clicked with probability `click[g]`; after a click, the
    user stops with probability `stop[g]`; without one, the user reads on.

    Args:
        name: of the model.
        click: for each grade, the probability of a click on a document that the user reads.
        stop: for each grade, the probability of stopping after a click.

    Raises:
        ConfigurationError: `click` or `stop` is not five probabilities.

    Source: Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009.
    """

    name: str
    click: tuple[float, ...]
    stop: tuple[float, ...]

    def __post_init__(self) -> None:
        for what, chances in (("click", self.click), ("stop", self.stop)):
            if len(chances) != GRADES or not all(0 <= chance <= 1 for chance in chances):
                raise ConfigurationError(
                    f"{what} must be {GRADES} probabilities, one for each grade (found {chances})."
                )

    def clicks(self, grades: Sequence[int], generator: Generator) -> list[int]:
        """The clicks of one user.

        Args:
            grades: per rank, the relevance of the document there, from 0 to 4.
            generator: one word is drawn for each document read, and one for each click.

        Returns:
            The clicked ranks, ascending from 0.

        >>> CLICK_MODELS["informational"].clicks([4, 0, 3, 1, 2], Generator(7))
        [0, 2]
        """
        clicked = []
        for rank, grade in enumerate(grades):
            if generator.below(RESOLUTION) < self.click[grade] * RESOLUTION:
                clicked.append(rank)
                if generator.below(RESOLUTION) < self.stop[grade] * RESOLUTION:
                    break
        return clicked


CLICK_MODELS: Final = MappingProxyType(
    {
        model.name: model
        for model in (
            ClickModel("perfect", (0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
            ClickModel("navigational", (0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
            ClickModel("informational", (0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
        )
    }
)
"""The models by name: a user who reads everything and never errs, one who looks for a single
document, and one who collects many documents and clicks often.

Source: Hofmann, Whiteson and de Rijke, "Balancing exploration and exploitation in listwise and
pairwise online learning to rank for information retrieval", Information Retrieval 16, 2013; also
used in Zoghi, Whiteson, de Rijke and Munos, "Relative confidence sampling", WSDM
2014, and Zoghi, Whiteson and de Rijke, "MergeRUCB", WSDM 2015.
"""


def click_model(name: str) -> ClickModel:
    """A click model by name: perfect, navigational or informational.

    Raises:
        ConfigurationError: the name is unknown.
    """
    if name not in CLICK_MODELS:
        raise ConfigurationError(
            f"the click model must be one of {', '.join(CLICK_MODELS)}"
            f" (found {name!r}{nearest(name, CLICK_MODELS)})."
        )
    return CLICK_MODELS[name]
