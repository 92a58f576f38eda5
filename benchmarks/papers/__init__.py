"""The published figures and tables, computed again: `python -m benchmarks.papers`.

Each is a module with its claim, its experiment and its verdict rule, all of them written before
anything was measured. `__main__.py` runs them and writes docs/papers.md.
"""
