"""Takes deliveries out of the topic, as long as the server runs, and gives them to the writer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from nearcast.service.gateway.publishing import POSITION, Gateway
from nearcast.service.intake.operations import Operation, TakeDeliveries
from nearcast.service.problems import Problem
from nearcast.storage.batch import Batch

log = logging.getLogger(__name__)
_RETRY_S = 1.0


class DeliveryReader:
    """One piece after the other; the position is kept in the commit that has what was made of the piece."""

    def __init__(self, gateway: Gateway, write: Callable[[Operation], Awaitable[Any]]) -> None:
        self._gateway, self._write = gateway, write
        self._thread = ThreadPoolExecutor(1, "nearcast-deliveries")
        self._task: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why deliveries cannot be read at present."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown()
        self._gateway.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                pairs, position = await loop.run_in_executor(self._thread, self._gateway.read)
                if pairs:
                    await self._write(TakeDeliveries(pairs, Batch(facts={POSITION: position})))
                self._gateway.took(position)
                self.failure = None
            except Problem:
                # The writer is busy or cannot write, and says so itself.
                await asyncio.sleep(_RETRY_S)
            except Exception as error:  # deliveries that wait must not wait for ever
                if self.failure is None:
                    log.exception("deliveries cannot be taken")
                self.failure = str(error)
                await asyncio.sleep(_RETRY_S)
