"""A monitoring server that runs, and ways to talk to it."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Final, cast

import httpx

from streamduel.config import LoadedConfig, MonitoringSettings
from streamduel.monitoring import Monitoring, server
from tests.unit.monitoring.fold import Clock, config

ARMS: Final = tuple(f"arm{number}" for number in range(16))

PATIENCE: Final = 0.8 * server.EXCHANGE_SECONDS
"""Seconds that a test waits at most: fewer than hanging clients are kept."""


def monitoring(clock: Clock, host: str = "127.0.0.1", port: int = 0) -> Monitoring:
    loaded = SimpleNamespace(config=config({"search": ARMS}))
    settings = MonitoringSettings(host=host, port=port)
    return Monitoring(settings, cast("LoadedConfig", loaded), clock)


class Service:
    """A monitoring server that runs, and ways to talk to it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.monitoring = monitoring(self.clock)
        self.host, self.port = self.monitoring.start()
        self.client = httpx.Client(base_url=f"http://{self.host}:{self.port}", timeout=PATIENCE)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def hang(self, request: bytes) -> socket.socket:
        """A client that sends something and then neither sends nor reads."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect((self.host, self.port))
        client.sendall(request)
        return client

    def close(self) -> None:
        self.client.close()
        self.monitoring.stop()
