"""Metrics, health and the server that shows them; nothing else depends on it."""

from streamduel.monitoring.server import Monitoring

__all__ = ["Monitoring"]
