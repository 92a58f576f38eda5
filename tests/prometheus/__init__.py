"""A real Prometheus for the tests, and its rules with shorter times."""
