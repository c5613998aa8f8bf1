"""The client for programs without asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from time import sleep
from typing import Any, Self

import httpx
from msgspec import UNSET
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from nearcast.client import calls
from nearcast.client.calls import Answer, Call, read_answer
from nearcast.client.cursor import Resume, refusal
from nearcast.client.errors import ApiError, ServerUnreachable
from nearcast.client.shapes import Area, Place
from nearcast.client.structs import message_of, move_of, subscription_of
from nearcast.client.transport import MAX_FRAME_BYTES, TIMEOUT_S, Server, new_idempotency_key, unreachable
from nearcast.wire import api
from nearcast.wire.webhooks import DeadLetter, WebhookAttempt, WebhookIn, WebhookOut, WebhookOutcome


class Client:
    """A connection to a server. Use it with `with`; threads may share it.

    Parameters
    ----------
    url
        http://host:port or https://host.
    key
        The API key; None for a server that asks for none.
    retries
        How often a request is sent again when the server says "later" (429, 503), or when no answer came and sending it twice
        does no harm.
    """

    def __init__(self, url: str, key: str | None = None, retries: int = 3, timeout_s: float = TIMEOUT_S) -> None:
        self._server = Server(url, key, retries)
        self._http = httpx.Client(base_url=self._server.url, headers=self._server.headers, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        keywords: Iterable[str] | None = None,
        region: Area | None = None,
        *,
        id: str | None = None,
        kind: api.Kind = "boolean",
        interest: str | None = None,
        location: Sequence[float] | None = None,
        k: int | None = None,
        spatial_weight: float | None = None,
        tags: Iterable[str] = (),
        expires: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        delivery: api.DeliveryOptions | None = None,
        subscriber: str | None = None,
    ) -> api.SubscriptionOut:
        """Make a subscription, or replace the one with this id. See `api.SubscriptionIn` for what each kind takes."""
        given = subscription_of(
            id, kind, keywords, interest, region, location, k, spatial_weight, tags, expires, metadata, delivery, subscriber
        )
        return self.do(calls.put_subscription(given))

    def subscribe_many(self, subscriptions: Iterable[api.SubscriptionIn] | bytes) -> api.BulkResult:
        """Many at once (structs, or NDJSON); a bad one is told in the result and does not stop the others."""
        return self.do(calls.put_subscriptions(subscriptions))

    def subscription(self, id: str) -> api.SubscriptionOut:
        return self.do(calls.get_subscription(id))

    def subscriptions(self) -> Iterator[api.SubscriptionOut]:
        """All that this key may see, in the order they were made."""
        after: str | None = None
        while True:
            page = self.do(calls.list_subscriptions(after, 1000))
            yield from page.subscriptions
            if page.next is UNSET:
                return
            after = str(page.next)

    def pause(self, id: str) -> api.SubscriptionOut:
        """Keep a subscription, and let it hear nothing until `resume`."""
        return self.do(calls.pause_subscription(id, True))

    def resume(self, id: str) -> api.SubscriptionOut:
        """Let a paused subscription go on."""
        return self.do(calls.pause_subscription(id, False))

    def unsubscribe(self, id: str) -> None:
        self.do(calls.delete_subscription(id))

    # --- messages and moves ------------------------------------------------------------------------------------------

    def publish(
        self,
        location: Place,
        keywords: Iterable[str] | None = None,
        text: str | None = None,
        *,
        id: str | None = None,
        tags: Iterable[str] = (),
        time: datetime | None = None,
        expires: datetime | None = None,
        lifetime: float | None = None,
        audience: Area | None = None,
        payload: Any = None,
        idempotency_key: str | None = None,
    ) -> api.MessageReceipt:
        """Publish one message; it is on disk when this returns."""
        given = message_of(location, keywords, text, id, tags, time, expires, lifetime, audience, payload)
        return self.do(calls.publish(given, idempotency_key or new_idempotency_key()))

    def publish_many(self, messages: Iterable[api.MessageIn] | bytes, idempotency_key: str | None = None) -> api.BulkResult:
        """Many at once (structs, or NDJSON); a bad one is told in the result and does not stop the others."""
        return self.do(calls.publish_lines(messages, idempotency_key or new_idempotency_key()))

    def move(
        self,
        subscription: str,
        location: Sequence[float] | None = None,
        *,
        region: Area | None = None,
        time: datetime | None = None,
        accuracy_m: float | None = None,
    ) -> api.MoveResult:
        """Where a moving subscription is now: a new middle of its region, or a new region."""
        return self.do(calls.move(move_of(subscription, location, region, time, accuracy_m)))

    def move_many(self, moves: Iterable[api.MoveIn] | bytes) -> api.BulkResult:
        return self.do(calls.move_lines(moves))

    # --- inbox -------------------------------------------------------------------------------------------------------

    def inbox(
        self,
        after: str | None = None,
        limit: int = 100,
        subscriptions: Sequence[str] | None = None,
        subscriber: str | None = None,
    ) -> api.InboxPage:
        """Events after a cursor; None: after the one acknowledged last."""
        return self.do(calls.read_inbox(after, limit, subscriptions, subscriber))

    def acknowledge(self, cursor: str) -> str:
        """Everything up to the cursor has been dealt with; gives the cursor that counts now."""
        return (self.do(calls.acknowledge(cursor))).cursor

    # --- insight -----------------------------------------------------------------------------------------------------

    def top(self, subscription: str) -> api.TopList:
        """The best messages of a ranked subscription, best first."""
        return self.do(calls.top(subscription))

    def current(self, subscription: str) -> api.CurrentList:
        """The living messages around a moving subscription."""
        return self.do(calls.current(subscription))

    def explain(self, subscription: str, message: api.MessageIn | None = None, message_id: str | None = None) -> api.ExplainOut:
        """Why a message (a draft, or one that is kept) does or does not reach a subscription."""
        return self.do(calls.explain(api.ExplainIn(subscription, message, message_id)))

    def dry_run(self, subscription: api.SubscriptionIn, messages: int = 1000) -> api.DryRunOut:
        """What a subscription would have got of the last messages."""
        return self.do(calls.dry_run(api.DryRunIn(subscription, messages)))

    def stats(self) -> api.StatsOut:
        return self.do(calls.stats())

    # --- webhooks ----------------------------------------------------------------------------------------------------

    def make_webhook(self, url: str, secret: str | None = None) -> WebhookOut:
        """Post events of subscriptions that name it (`DeliveryOptions.webhook`) to a URL. The secret is shown only here."""
        return self.do(calls.make_webhook(WebhookIn(url, secret)))

    def replace_webhook(self, id: str, url: str, secret: str | None = None, is_enabled: bool = True) -> WebhookOut:
        return self.do(calls.replace_webhook(id, WebhookIn(url, secret, is_enabled)))

    def webhooks(self) -> list[WebhookOut]:
        return (self.do(calls.list_webhooks())).webhooks

    def webhook(self, id: str) -> WebhookOut:
        return self.do(calls.get_webhook(id))

    def delete_webhook(self, id: str) -> None:
        self.do(calls.delete_webhook(id))

    def rotate_secret(self, id: str) -> WebhookOut:
        """A new secret, shown only here; the one before signs beside it for a day."""
        return self.do(calls.rotate_secret(id))

    def test_webhook(self, id: str) -> WebhookOutcome:
        """Post an empty batch and tell what came of it."""
        return self.do(calls.test_webhook(id))

    def webhook_attempts(self, id: str) -> list[WebhookAttempt]:
        return (self.do(calls.webhook_attempts(id))).attempts

    def dead_letters(self, id: str) -> list[DeadLetter]:
        return (self.do(calls.dead_letters(id))).dead_letters

    def retry_dead_letter(self, id: str, letter: str) -> WebhookOutcome:
        return self.do(calls.retry_dead_letter(id, letter))

    # --- keys --------------------------------------------------------------------------------------------------------

    def make_key(
        self, name: str, roles: Sequence[api.Role], subscriber: str | None = None, expires: datetime | None = None
    ) -> api.KeyOut:
        """A new key of the same tenant (role admin); its secret is shown only here."""
        return self.do(calls.make_key(api.KeyIn(name, list(roles), subscriber, expires)))

    def keys(self) -> list[api.KeyOut]:
        return (self.do(calls.list_keys())).keys

    def delete_key(self, id: str) -> None:
        self.do(calls.delete_key(id))

    # --- live --------------------------------------------------------------------------------------------------------

    def listen(
        self,
        after: str | None = None,
        subscriptions: Sequence[str] | None = None,
        subscriber: str | None = None,
        acknowledges: bool = False,
    ) -> Iterator[api.Event]:
        """Events as they come, without an end. Connects again by itself and goes on where it was.

        `after`: a cursor, "now" (None) or "ack". `acknowledges`: tell the server about every frame that was dealt with, so that
        `after="ack"` goes on there in another process.
        """
        resume = Resume(after)
        while True:
            url = self._server.live_url(resume.cursor, subscriptions, subscriber)
            try:
                with connect(
                    url, additional_headers=self._server.headers, compression=None, max_size=MAX_FRAME_BYTES
                ) as socket:
                    for text in socket:
                        events, cursor = resume.fresh_events(text)
                        yield from events
                        resume.settle(cursor)
                        if acknowledges and events:
                            socket.send(f'{{"ack":"{cursor}"}}')
                closed = (socket.close_code, socket.close_reason)
            except ConnectionClosed as error:
                closed = (error.rcvd.code, error.rcvd.reason) if error.rcvd is not None else (None, None)
            except (OSError, InvalidHandshake, TimeoutError):
                closed = (None, None)
            problem = refusal(*closed)
            if problem is not None:
                raise problem
            sleep(resume.wait_s())

    # --- inside ------------------------------------------------------------------------------------------------------

    def do(self, call: Call[Answer]) -> Answer:
        """Send a request, again if that is safe and helps; raises ApiError or ServerUnreachable."""
        n_tried = 0
        while True:
            n_tried += 1
            try:
                return self._once(call)
            except (ApiError, ServerUnreachable) as error:
                sleep(self._server.wait_s(call, n_tried, error))

    def _once(self, call: Call[Answer]) -> Answer:
        try:
            answer = self._http.request(call.method, call.path, content=call.body, params=call.params, headers=call.headers)
        except httpx.TransportError as error:
            raise unreachable(self._server.url, error) from None
        return read_answer(call, answer.status_code, answer.headers, answer.content)
