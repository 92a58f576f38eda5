"""`streamduel demo`: simulated users of a recipe search, and who finds its best ranker."""
