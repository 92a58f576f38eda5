"""streamduel finds the best of K rankers from the clicks of the people who use them."""

__version__ = "0.1.0"
