"""The fold over the log: records in, assignments and dead letters out, nothing else goes in."""
