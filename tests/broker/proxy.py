"""A network that can fail: TCP proxies between a Kafka cluster and its clients.

They work on connections, not on packets. So a lost packet is what an application sees of one: the
connection stalls until the packet would have been sent again.
"""

import asyncio
import random
import struct
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.broker.local_kafka import free_port

CHUNK: Final = 64 * 1024  # one read
SEGMENT: Final = 1448  # the payload of a TCP segment on Ethernet
RESEND_SECONDS: Final = 0.2  # the least time after which Linux sends a lost segment again
RESENDS: Final = 5  # a segment that is lost more often than this in a row resets the connection
IN_FLIGHT: Final = 64  # chunks in one direction of a connection, 4 MB: a usual TCP window

Address = tuple[str, int]


@dataclass
class Weather:
    """What the network does to everything that it carries at the moment.

    Attributes:
        cut: nothing arrives in either direction; connections stay open.
        delay: seconds by which everything arrives later, in each direction.
        loss: probability that a TCP segment is lost.
        client: only connections whose Kafka client id contains this text; "": all.
    """

    cut: bool = False
    delay: float = 0.0
    loss: float = 0.0
    client: str = ""


class Proxies:
    """One proxy for each node of a cluster, all in a thread of their own.

    Args:
        targets: the addresses of the nodes.
        seed: of the losses.
    """

    def __init__(self, targets: Sequence[Address], seed: int = 0) -> None:
        self.ports = [free_port() for _ in targets]
        self._targets = list(targets)
        self._weather = [Weather() for _ in targets]
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._connections: set[tuple[int, asyncio.Task[None]]] = set()
        self._changed = asyncio.Event()

    def open(self) -> None:
        """Listen."""
        self._thread.start()
        self._wait(self._open())

    def cut(self, *nodes: int) -> None:
        """Let nothing through to these nodes, or to all, until `heal`; connections stay open."""
        self._set(nodes, cut=True)

    def slow(self, seconds: float, *nodes: int, client: str = "") -> None:
        """Let everything arrive later by this, in each direction, until `heal`."""
        self._set(nodes, delay=seconds, client=client)

    def lose(self, share: float, *nodes: int) -> None:
        """Lose this share of all TCP segments until `heal`."""
        self._set(nodes, loss=share)

    def reset(self, *nodes: int) -> None:
        """Break all connections to these nodes, or to all; new ones are accepted."""
        chosen = nodes or range(len(self.ports))

        def apply() -> None:
            for node, task in self._connections:
                if node in chosen:
                    task.cancel()

        self._call(apply)

    def heal(self, *nodes: int) -> None:
        """End every fault of these nodes, or of all; what was held back arrives now."""
        self._set(nodes, cut=False, delay=0.0, loss=0.0, client="")

    def close(self) -> None:
        """Close all connections and the thread."""
        if self._thread.is_alive():
            self._wait(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def _set(self, nodes: Sequence[int], **changes: Any) -> None:
        def apply() -> None:
            for node in nodes or range(len(self.ports)):
                for name, value in changes.items():
                    setattr(self._weather[node], name, value)
            self._changed.set()
            self._changed = asyncio.Event()

        self._call(apply)

    def _call(self, function: Callable[[], None]) -> None:
        async def call() -> None:
            function()

        self._wait(call())

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        for node, port in enumerate(self.ports):

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: int = node
            ) -> None:
                await self._serve(node, reader, writer)

            self._servers.append(await asyncio.start_server(serve, "127.0.0.1", port))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = [task for _, task in self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(
        self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        entry = (node, task)
        self._connections.add(entry)
        writers = [writer]
        try:
            answers, requests = await asyncio.open_connection(*self._targets[node])
            writers.append(requests)
            first = await reader.read(CHUNK)
            name = client_id(first)
            # The end of one direction is the end of the connection, as Kafka uses it.
            await first_done(
                self._carry(node, name, reader, requests, first),
                self._carry(node, name, answers, writer),
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(entry)
            for each in writers:
                each.transport.abort()

    async def _carry(
        self, node: int, client: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
        chunk: bytes = b"",
    ) -> None:  # fmt: skip
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_FLIGHT)

        async def receive(chunk: bytes) -> None:
            due = 0.0
            while chunk := chunk or await reader.read(CHUNK):
                weather = self._weather[node]
                late = 0.0
                if weather.client in client:
                    late = weather.delay + self._resent(weather.loss, len(chunk))
                # In order: what follows a late chunk is late as well.
                due = max(due, self._loop.time() + late)
                await queue.put((due, chunk))
                chunk = b""
            await queue.put((due, b""))
            await asyncio.Event().wait()  # `deliver` ends the connection

        async def deliver() -> None:
            while True:
                due, chunk = await queue.get()
                if (wait := due - self._loop.time()) > 0:
                    await asyncio.sleep(wait)
                while (weather := self._weather[node]).cut and weather.client in client:
                    await self._changed.wait()
                if not chunk:
                    return
                writer.write(chunk)
                await writer.drain()

        await first_done(receive(chunk), deliver())

    def _resent(self, loss: float, size: int) -> float:
        """Seconds until the last lost segment of a chunk has arrived.

        Raises:
            ConnectionResetError: a segment was lost too often.
        """
        late = 0.0
        if loss:
            for _ in range(-(-size // SEGMENT)):
                losses = 0
                while self._random.random() < loss:
                    losses += 1
                    if losses > RESENDS:
                        raise ConnectionResetError
                # Each time in a row takes twice as long.
                late += RESEND_SECONDS * (2**losses - 1)
        return late


async def first_done(*works: Coroutine[Any, Any, None]) -> None:
    """Run several at once until one ends, and raise its error."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def client_id(request: bytes) -> str:
    """The client id in the first request of a Kafka connection; "" if it has none.

    >>> client_id(bytes.fromhex("0000000c" "0012" "0003" "00000001" "0002") + b"me")
    'me'
    """
    if len(request) < 14:
        return ""
    (size,) = struct.unpack_from(">h", request, 12)
    return request[14 : 14 + max(0, size)].decode("utf-8", "replace")
