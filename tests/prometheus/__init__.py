"""A real Prometheus for tests, and the rules with shorter times."""
