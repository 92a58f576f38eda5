"""Tests of metrics, health and the server that shows them."""
