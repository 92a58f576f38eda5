"""The job, once per peer; each program runs in the environment of its peer.

    python -m benchmarks.peers.programs.NAME JOB

`JOB` is a `Job` as JSON. A program reads until it is killed.
"""
