"""Six rankers of the arXiv search engine and how often each beat each other one.

The figures are those of Yue & Joachims, "Beat the Mean Bandit", ICML 2011, Table 1, as the file
`pref_arxiv.txt` of jkomiyama/duelingbanditlib (MIT) has them: measured on real users by
interleaving. The first ranker beats all others, by 0.04 at least; the fourth and the sixth are
equal; the preferences are not transitive in strength. Small gaps as in this table are what a
search engine's rankers differ by.
"""

PREFERENCES: tuple[tuple[float, ...], ...] = (
    (0.50, 0.55, 0.55, 0.54, 0.61, 0.61),
    (0.45, 0.50, 0.55, 0.55, 0.58, 0.60),
    (0.45, 0.45, 0.50, 0.54, 0.51, 0.56),
    (0.46, 0.45, 0.46, 0.50, 0.54, 0.50),
    (0.39, 0.42, 0.49, 0.46, 0.50, 0.51),
    (0.39, 0.40, 0.44, 0.50, 0.49, 0.50),
)
"""`PREFERENCES[i][j]`: the probability that ranker i wins a duel with ranker j."""

RANKERS: tuple[str, ...] = ("ltr-v3", "ltr-v2", "dense-v1", "ltr-v1", "bm25-rm3", "bm25")
"""Names for the six, in the order of the table's rows. The paper gives none; these are ours."""
