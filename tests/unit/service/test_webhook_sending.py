"""Real requests to a real receiver: signed, bounded, never led elsewhere."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from nearcast.service.webhooks.addresses import AddressRules
from nearcast.service.webhooks.sending import Outcome, Sender
from nearcast.wire.signatures import make_secret, verify

LOCAL = AddressRules.of(["127.0.0.0/8"], allows_http=True)
SECRET = make_secret()


@contextmanager
def receiver(status: int = 200, answer: bytes = b"", headers: dict[str, str] | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server that keeps what it got; its URL and the list of (headers, body)."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", got
    finally:
        server.shutdown()
        server.server_close()


def post(url: str, rules: AddressRules = LOCAL, timeout_s: float = 5.0, n: int = 1) -> Outcome:
    async def run() -> Outcome:
        sender = Sender(rules, timeout_s)
        try:
            for number in range(n):
                outcome = await sender.send(url, [SECRET], f"id-{number}", b"[1]", "application/json")
            return outcome
        finally:
            await sender.close()

    return asyncio.run(run())


def test_a_receiver_can_verify_what_it_got() -> None:
    with receiver() as (url, got):
        assert post(url, n=2).is_success
    (_, _), (headers, body) = got
    verify(SECRET, headers, body, time.time())
    assert (headers["webhook-id"], body) == ("id-1", b"[1]")


@pytest.mark.parametrize(("status", "is_success", "is_final"), [(204, True, False), (500, False, False), (410, False, True)])
def test_the_answer_decides(status: int, is_success: bool, is_final: bool) -> None:
    with receiver(status) as (url, _):
        outcome = post(url)
    assert (outcome.status, outcome.is_success, outcome.is_final) == (status, is_success, is_final)


def test_what_the_receiver_asks_for_is_read() -> None:
    with receiver(503, headers={"Retry-After": "7"}) as (url, _):
        assert post(url).retry_after_s == 7


def test_a_redirect_is_told_and_not_followed() -> None:
    with receiver() as (inside, got_inside), receiver(307, headers={"Location": inside}) as (url, got):
        outcome = post(url)
    assert (len(got), got_inside) == (1, [])
    assert "redirects are not followed" in outcome.reason


def test_an_address_inside_gets_no_request() -> None:
    with receiver() as (url, got):
        rules = AddressRules(allows_http=True)
        assert "not a public address" in post(url, rules).reason
        assert "not a public address" in post(url.replace("127.0.0.1", "localhost"), rules).reason
        assert "not a public address" in post(url.replace("127.0.0.1", "0.0.0.0"), rules).reason
    assert got == []


def test_a_long_answer_is_not_read_to_its_end() -> None:
    with receiver(answer=b"x" * 5_000_000) as (url, _):
        assert post(url, n=2).is_success


def test_nobody_there_and_no_answer_are_outcomes_and_not_errors() -> None:
    with receiver() as (url, _):
        pass
    assert "ConnectError" in post(url).reason

    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = post(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_s=0.05)
    assert outcome == Outcome(None, "no answer within 0.05 s")


def test_a_url_that_is_none_is_an_outcome_and_not_an_error() -> None:
    for url in ("https://example.org/straße", "https://exämple.org/", "https://example.org/a b", "https://example.org/a\r\nb"):
        assert "characters that URLs do not have" in post(url).reason


def test_waiting_for_a_free_connection_is_not_the_fault_of_the_receiver() -> None:
    async def run() -> list[Outcome]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"[1]")
            await asyncio.sleep(0.1)
            writer.write(b"HTTP/1.1 204 X\r\nconnection: close\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        sender = Sender(LOCAL, timeout_s=1.0, max_connections=1)
        try:
            sends = (sender.send(url, [SECRET], f"id-{number}", b"[1]", "application/json") for number in range(15))
            return await asyncio.gather(*sends)
        finally:
            await sender.close()
            server.close()

    assert {outcome.status for outcome in asyncio.run(run())} == {204}
