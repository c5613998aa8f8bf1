"""Webhooks on a real broker and store, posted to a real receiver: in order, given up, switched off, restarted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.inbox.inboxes import Inboxes
from nearcast.service.limits import read_limits
from nearcast.service.problems import Problem
from nearcast.service.push.stream_reader import Pace
from nearcast.service.webhooks.addresses import AddressRules
from nearcast.service.webhooks.registry import Webhooks
from nearcast.service.webhooks.retrying import RetryRules
from nearcast.storage.store import open_store
from nearcast.wire.api import DeliveryOptions, MessageIn, PointShape, SubscriptionIn
from nearcast.wire.signatures import verify
from nearcast.wire.webhooks import WebhookIn

ANN = Caller("key", "tenant", frozenset({"publisher", "subscriber"}), "ann")
BOB = Caller("key", "tenant", frozenset({"subscriber"}), "bob")
QUICK = RetryRules(first_s=0.01, factor=1.0, longest_s=0.02, attempts=3, disable_after=2)


class Receiver:
    """A server that answers with what `decide` says of (events, number of the request)."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.decide: Callable[[list[Any], int], int] = lambda events, number: 200
        self.url = ""

    @property
    def texts(self) -> list[str]:
        """Texts of the messages of all requests that were accepted, in order."""
        return [event["data"]["message"]["text"] for events in self.accepted for event in events]

    @property
    def accepted(self) -> list[Any]:
        bodies = [json.loads(body) for _, body in self.requests]
        return [events for number, events in enumerate(bodies) if self.decide(events, number) < 300]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                headers = {name.lower(): value for name, value in headers.items()}
                body = await reader.readexactly(int(headers["content-length"]))
                status = self.decide(json.loads(body), len(self.requests))
                self.requests.append((headers, body))
                writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        server.close()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Broker, Webhooks]]:
    broker = Broker(open_store(str(folder / "store.db")), None, read_limits())
    await broker.start()
    addresses = AddressRules.of(["127.0.0.0/8"], allows_http=True)
    webhooks = Webhooks(broker, addresses, QUICK, Pace(heartbeat_s=0.05, shortest_s=0.0, frame_events=2))
    await webhooks.start()
    try:
        yield broker, webhooks
    finally:
        await webhooks.stop()
        await broker.stop()


async def subscribe(broker: Broker, id: str, webhook: str | None, **options: Any) -> None:
    given = SubscriptionIn(id=id, keywords=[id], delivery=DeliveryOptions(webhook=webhook, **options))
    await broker.put_subscription(ANN, given)


async def publish(broker: Broker, *texts: str) -> None:
    for text in texts:
        await broker.publish(ANN, MessageIn(PointShape([1.0, 2.0]), text=text))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.005)


def test_events_are_posted_in_order_signed_and_only_those_that_are_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)
            await subscribe(broker, "hail", None)
            await publish(broker, "fire 0", "hail 1", "fire 2", "fire 3")
            await until(lambda: len(receiver.texts) == 3)
            assert receiver.texts == ["fire 0", "fire 2", "fire 3"]
            assert made.secret is not None
            for headers, body in receiver.requests:
                verify(made.secret, headers, body, time.time())
            await until(lambda: len(webhooks.attempts(ANN, made.id)) == len(receiver.requests))
            assert all(attempt.is_success for attempt in webhooks.attempts(ANN, made.id))

    asyncio.run(run())


def test_a_request_that_fails_comes_again_with_its_id_and_nothing_overtakes_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            receiver.decide = lambda events, number: 500 if number < 2 else 200
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)
            await publish(broker, "fire 0")
            await until(lambda: len(receiver.requests) >= 1)
            await publish(broker, "fire 1", "fire 2")
            await until(lambda: len(receiver.texts) == 3)
            assert receiver.texts == ["fire 0", "fire 1", "fire 2"]
            assert len({headers["webhook-id"] for headers, _ in receiver.requests[:3]}) == 1
            first = webhooks.attempts(ANN, made.id)[-1]
            assert (first.is_success, first.status, first.next is not None) == (False, 500, True)

    asyncio.run(run())


def test_what_is_given_up_is_a_dead_letter_and_can_be_sent_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            receiver.decide = lambda events, number: 500 if "poison" in json.dumps(events) else 200
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)
            await publish(broker, "fire poison")
            await until(lambda: len(receiver.requests) == QUICK.attempts)
            await publish(broker, "fire 1")
            await until(lambda: receiver.texts == ["fire 1"])
            (letter,) = await webhooks.dead_letters(ANN, made.id)
            assert (letter.attempts, letter.outcome, letter.subscription) == (3, "answered 500", "fire")
            assert not (await webhooks.retry(ANN, made.id, letter.id)).is_success
            receiver.decide = lambda events, number: 200
            assert (await webhooks.retry(ANN, made.id, letter.id)).is_success
            assert await webhooks.dead_letters(ANN, made.id) == []
            assert webhooks.get(ANN, made.id).is_enabled

    asyncio.run(run())


def test_a_receiver_that_never_accepts_is_switched_off_with_the_cause_and_goes_on_where_it_stood(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            receiver.decide = lambda events, number: 503
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)
            await publish(broker, "fire 0")
            await until(lambda: len(receiver.requests) == 3)
            await publish(broker, "fire 1")
            await until(lambda: not webhooks.get(ANN, made.id).is_enabled)
            assert webhooks.get(ANN, made.id).disabled_reason == "2 requests in a row were given up, the last: answered 503"
            await publish(broker, "fire 2")
            receiver.decide = lambda events, number: 200 if number >= 6 else 503
            await webhooks.replace(ANN, made.id, WebhookIn(receiver.url))
            await until(lambda: receiver.texts == ["fire 2"])

    asyncio.run(run())


def test_a_receiver_that_is_gone_is_switched_off_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            receiver.decide = lambda events, number: 410
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)
            await publish(broker, "fire 0")
            await until(lambda: not webhooks.get(ANN, made.id).is_enabled)
            assert len(receiver.requests) == 1

    asyncio.run(run())


def test_a_restart_goes_on_after_what_was_accepted(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver:
            async with serving(tmp_path) as (broker, webhooks):
                made = await webhooks.make(ANN, WebhookIn(receiver.url))
                await subscribe(broker, "fire", made.id, max_notifications=3)
                await publish(broker, "fire 0", "fire 1")
                await until(lambda: len(receiver.texts) == 2)
                await until(lambda: sum(one.is_success for one in webhooks.attempts(ANN, made.id)) == len(receiver.requests))
            async with serving(tmp_path) as (broker, webhooks):
                await publish(broker, "fire 2", "fire 3")
                await until(lambda: len(receiver.texts) == 3)
                await asyncio.sleep(0.1)
                # The maximum counts what went out before the restart.
                assert receiver.texts == ["fire 0", "fire 1", "fire 2"]
                assert receiver.accepted[-1][-1]["lastnotification"] is True

    asyncio.run(run())


def test_a_digest_that_was_being_gathered_survives_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver:
            async with serving(tmp_path) as (broker, webhooks):
                made = await webhooks.make(ANN, WebhookIn(receiver.url))
                # The first message of a process may wait for kernels to be loaded.
                await publish(broker, "anything")
                await subscribe(broker, "fire", made.id, digest_seconds=1.5)
                await publish(broker, "fire 0", "fire 1", "fire 2")
                await asyncio.sleep(0.1)
                assert receiver.requests == []
            async with serving(tmp_path) as (broker, webhooks):
                await until(lambda: len(receiver.texts) == 3)
                assert receiver.texts == ["fire 0", "fire 1", "fire 2"]
                assert [events[-1]["digestsize"] for events in receiver.accepted] == [3]

    asyncio.run(run())


def test_what_was_accepted_while_a_digest_was_being_gathered_is_not_posted_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver:
            async with serving(tmp_path) as (broker, webhooks):
                made = await webhooks.make(ANN, WebhookIn(receiver.url))
                await publish(broker, "anything")
                await subscribe(broker, "slow", made.id, digest_seconds=3)
                await subscribe(broker, "soon", made.id, digest_seconds=1)
                await subscribe(broker, "fire", made.id)
                await publish(broker, "slow 0", "soon 1", "slow 2", "fire 3", "fire 4")
                await until(lambda: "soon 1" in receiver.texts and "fire 4" in receiver.texts)
                n_attempts = len(receiver.requests)
                await until(lambda: len(webhooks.attempts(ANN, made.id)) >= n_attempts)
            async with serving(tmp_path) as (broker, webhooks):
                await publish(broker, "fire 5")
                await until(lambda: {"slow 2", "fire 5"} <= {*receiver.texts})
                assert sorted(receiver.texts) == ["fire 3", "fire 4", "fire 5", "slow 0", "slow 2", "soon 1"]
                digest = next(events for events in receiver.accepted if events[-1].get("digestsize") == 2)
                assert [event["data"]["message"]["text"] for event in digest] == ["slow 0", "slow 2"]

    asyncio.run(run())


def test_what_an_ended_subscription_still_had_is_posted_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver:
            async with serving(tmp_path) as (broker, webhooks):
                made = await webhooks.make(ANN, WebhookIn(receiver.url, is_enabled=False))
                await subscribe(broker, "fire", made.id)
                await publish(broker, "fire 0")
                await broker.delete_subscription(ANN, "fire")
            async with serving(tmp_path) as (_, webhooks):
                await webhooks.replace(ANN, made.id, WebhookIn(receiver.url))
                await until(lambda: sum(map(len, receiver.accepted)) == 2)
                types = [event["type"] for events in receiver.accepted for event in events]
                assert types == ["io.nearcast.match", "io.nearcast.subscription.ended"]

    asyncio.run(run())


def test_options_of_ended_subscriptions_go_with_their_events(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (broker, webhooks):
            made = await webhooks.make(ANN, WebhookIn("http://127.0.0.1:9/", is_enabled=False))
            for id in ("fire", "hail"):
                await subscribe(broker, id, made.id)
            numbers = [*broker.store.numbers_of("tenant", "ann")]
            await broker.delete_subscription(ANN, "fire")
        async with serving(tmp_path) as (broker, _):
            inboxes = Inboxes(broker.store, 0)
            assert [inboxes.webhook_of(number) for number in numbers] == [made.id, made.id]
            inboxes.forget_before(broker.latest)
            assert [inboxes.webhook_of(number) for number in numbers] == [None, made.id]

    asyncio.run(run())


def test_two_secrets_sign_while_one_replaces_the_other(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (_, webhooks):
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            rotated = await webhooks.rotate(ANN, made.id)
            assert (await webhooks.test(ANN, made.id)).is_success
            headers, body = receiver.requests[-1]
            assert body == b"[]"
            for secret in (made.secret, rotated.secret):
                assert secret is not None
                verify(secret, headers, body, time.time())
            assert webhooks.get(ANN, made.id).secret is None

    asyncio.run(run())


def test_nobody_else_sees_or_touches_a_webhook(tmp_path: Path) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (_, webhooks):
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            assert webhooks.all_of(BOB) == []
            assert [one.id for one in webhooks.all_of(ANN)] == [made.id]
            for attempt in (webhooks.remove(BOB, made.id), webhooks.rotate(BOB, made.id), webhooks.dead_letters(BOB, made.id)):
                with pytest.raises(Problem) as caught:
                    await attempt
                assert caught.value.status == 404
            await webhooks.remove(ANN, made.id)
            assert webhooks.all_of(ANN) == []

    asyncio.run(run())


def test_what_cannot_be_a_webhook_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as (_, webhooks):
            publisher = Caller("key", "tenant", frozenset({"publisher"}), "pat")
            for caller, given, status in (
                (ANN, WebhookIn("http://10.0.0.1/"), 422),
                (ANN, WebhookIn("https://example.org/", "short-secret"), 422),
                (publisher, WebhookIn("https://example.org/"), 403),
            ):
                with pytest.raises(Problem) as caught:
                    await webhooks.make(caller, given)
                assert caught.value.status == status

    asyncio.run(run())


def test_a_subscriber_has_no_more_webhooks_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_SERVICE_WEBHOOKS_PER_SUBSCRIBER", "2")

    async def run() -> None:
        async with serving(tmp_path) as (_, webhooks):
            given = WebhookIn("https://example.org/", is_enabled=False)
            answers = await asyncio.gather(*(webhooks.make(ANN, given) for _ in range(3)), return_exceptions=True)
            assert sorted(getattr(answer, "status", 201) for answer in answers) == [201, 201, 409]
            await webhooks.make(BOB, given)
            await webhooks.remove(ANN, webhooks.all_of(ANN)[0].id)
            await webhooks.make(ANN, given)

    asyncio.run(run())


def test_a_mistake_of_the_server_switches_a_webhook_off_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with receiving() as receiver, serving(tmp_path) as (broker, webhooks):
            made = await webhooks.make(ANN, WebhookIn(receiver.url))
            await subscribe(broker, "fire", made.id)

            def fails(number: int) -> str | None:
                raise ZeroDivisionError("nobody thought of this")

            with monkeypatch.context() as broken:
                broken.setattr(broker, "webhook_of", fails)
                await publish(broker, "fire 0")
                await until(lambda: not webhooks.get(ANN, made.id).is_enabled)
            assert "ZeroDivisionError: nobody thought of this" in (webhooks.get(ANN, made.id).disabled_reason or "")
            assert "is switched off" in caplog.text
            await webhooks.replace(ANN, made.id, WebhookIn(receiver.url))
            await until(lambda: receiver.texts == ["fire 0"])

    asyncio.run(run())
