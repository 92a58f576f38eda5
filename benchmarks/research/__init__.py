"""What top-two sampling does, and where it is weak: the tables of docs/research/top-two.md."""
