"""A server process: logs, store, app, and the loop until it is told to stop."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import structlog
import uvicorn
from structlog.typing import Processor

from nearcast.service.app import create_app
from nearcast.service.broker import Broker
from nearcast.service.gateway.publishing import Gateway
from nearcast.service.limits import read_limits
from nearcast.service.open_files import allow_many_files
from nearcast.storage.store import open_store
from nearcast.topics.topic import read_address

log = logging.getLogger(__name__)
EMBEDDED = "embedded"
_KEEP_ALIVE_S = 75
_STOP_S = 10
_GARBAGE = (50_000, 20, 100)


class Serving(NamedTuple):
    """What `nearcast serve` is told."""

    store: str
    host: str
    port: int
    snapshots: Path | None
    certificate: Path | None
    private_key: Path | None
    has_json_log: bool
    engine: str = EMBEDDED
    """Or the address of a pipeline's topics."""


class _Server(uvicorn.Server):
    """Ends live streams as soon as it is told to stop: waiting for them to end by themselves would take for ever."""

    def __init__(self, config: uvicorn.Config, broker: Broker) -> None:
        super().__init__(config)
        self._broker = broker

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._broker.end_streams()
        super().handle_exit(sig, frame)


def run_server(given: Serving) -> None:
    """Serve until SIGINT or SIGTERM; everything accepted is finished first."""
    set_up_log(given.has_json_log)
    # Requests make many small objects that are never part of a cycle; the default looks at them far too often.
    gc.set_threshold(*_GARBAGE)
    allow_many_files()
    store = open_store(given.store, is_server=True)
    folder = given.snapshots
    if folder is None and not given.store.startswith("postgres"):
        folder = Path(given.store + ".index")
    gateway = None if given.engine == EMBEDDED else Gateway(read_address(given.engine), store)
    broker = Broker(store, folder if gateway is None else None, read_limits(), gateway)
    app = create_app(broker)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=65_536,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
        server_header=False,
        ssl_certfile=given.certificate,
        ssl_keyfile=given.private_key,
    )
    listening = _listen(given.host, given.port)
    scheme = "http" if given.certificate is None else "https"
    log.info("listening on %s://%s:%d", scheme, given.host, listening.getsockname()[1])
    _Server(config, broker).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(2048)
    return listening


def set_up_log(has_json: bool) -> None:
    """One line for each entry, on standard error; never a key or a body."""
    shared: list[Processor] = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    renderer: Processor = structlog.processors.JSONRenderer() if has_json else structlog.dev.ConsoleRenderer(colors=False)
    last: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        renderer,
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
