"""`streamduel analyze`: which ranker has won in a click log of any origin."""
