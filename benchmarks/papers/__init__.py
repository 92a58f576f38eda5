"""Published figures and tables, computed again: `python -m benchmarks.papers`.

Each is a module with its claim, its experiment and its verdict rule, all written before the
measurement. `__main__.py` runs them and writes docs/papers.md.
"""
