"""All webhooks of a server: made, changed, removed, and each with its worker while it is on."""

from __future__ import annotations

import asyncio
import logging
import secrets as randomness
import time

import msgspec

from nearcast.errors import NearcastError
from nearcast.service.broker import Broker
from nearcast.service.caller import Caller
from nearcast.service.problems import Problem, forbidden, not_found, unusable
from nearcast.service.push.stream_reader import Pace
from nearcast.service.webhooks.addresses import AddressRules
from nearcast.service.webhooks.retrying import RetryRules
from nearcast.service.webhooks.sending import Outcome, Sender
from nearcast.service.webhooks.state import DEAD_LETTERS, PLACES, WEBHOOKS, DeadLetterRecord, Place, Secret, WebhookRecord
from nearcast.service.webhooks.worker import CONTENT_TYPE, Disable, Worker
from nearcast.wire.api import SubscriptionIn
from nearcast.wire.signatures import check_secret, make_secret
from nearcast.wire.webhooks import DeadLetter, WebhookAttempt, WebhookIn, WebhookOut

# How long the secret before the last one still signs.
SECRET_OVERLAP_S = 86_400.0
# A store that failed is asked again so much later.
_STORE_PAUSE_S = 5.0
Key = tuple[str, str]

log = logging.getLogger(__name__)


class Webhooks:
    """By tenant and id. `start` reads them from the store; everything changed is on disk before it is answered."""

    def __init__(
        self, broker: Broker, addresses: AddressRules, rules: RetryRules | None = None, pace: Pace | None = None
    ) -> None:
        self._broker = broker
        self._addresses = addresses
        self._rules = rules or RetryRules()
        # A request takes many events: no need to hurry, and no heartbeats but to note where it stands.
        self._pace = pace or Pace(heartbeat_s=60.0, shortest_s=0.02, frame_events=100)
        self._sender = Sender(addresses)
        self._webhooks: dict[Key, WebhookRecord] = {}
        self._making: dict[Key, WebhookRecord] = {}
        self._places: dict[Key, Place] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        for tenant, id, body in await self._broker.read_records(PLACES):
            self._places[tenant, id] = msgspec.json.decode(body, type=Place)
        for tenant, id, body in await self._broker.read_records(WEBHOOKS):
            self._webhooks[tenant, id] = msgspec.json.decode(body, type=WebhookRecord)
            self._begin((tenant, id))

    async def stop(self) -> None:
        for key in list(self._tasks):
            await self._end(key)
        await self._sender.close()

    # --- what owners do ----------------------------------------------------------------------------------------------

    def all_of(self, caller: Caller) -> list[WebhookOut]:
        mine = (one for one in self._webhooks.values() if one.tenant == caller.tenant and caller.may_read(one.subscriber))
        return [one.shown() for one in sorted(mine, key=lambda one: (one.created, one.id))]

    def check_named(self, caller: Caller, given: SubscriptionIn) -> None:
        """Raise Problem if a subscription names a webhook that does not read the inbox of its subscriber."""
        id, owner = given.delivery.webhook, given.subscriber or caller.subscriber
        webhook = None if id is None else self._webhooks.get((caller.tenant, id))
        if id is not None and (webhook is None or webhook.subscriber != owner):
            raise unusable(f"there is no webhook {id!r} of {owner!r}; make it first: POST /v1/webhooks", "delivery.webhook")

    def get(self, caller: Caller, id: str) -> WebhookOut:
        return self._owned(caller, id).shown()

    async def make(self, caller: Caller, given: WebhookIn) -> WebhookOut:
        """A new webhook of the caller's subscriber; it gets what happens from now on."""
        if not caller.may_read(caller.subscriber):
            raise forbidden("this key may not read an inbox, so it may not have it posted either; use one of a subscriber")
        secret = self._checked(given)
        self._check_number(caller)
        webhook = WebhookRecord(
            id="wh_" + randomness.token_hex(8),
            tenant=caller.tenant,
            subscriber=caller.subscriber,
            url=given.url,
            created=time.time(),
            secrets=[Secret(secret)],
            is_enabled=given.is_enabled,
        )
        key = (webhook.tenant, webhook.id)
        self._places[key] = Place(self._broker.latest)
        self._making[key] = webhook
        try:
            await self._keep(webhook, self._places[key])
            self._webhooks[key] = webhook
        finally:
            del self._making[key]
        self._begin(key)
        return webhook.shown(secret)

    async def replace(self, caller: Caller, id: str, given: WebhookIn) -> WebhookOut:
        """Another URL, on or off, another secret. Switched on again it goes on where it stood."""
        webhook = self._owned(caller, id)
        secret = self._checked(given) if given.secret is not None else None
        self._addresses_checked(given.url)
        changed = msgspec.structs.replace(webhook, url=given.url, is_enabled=given.is_enabled, disabled_reason=None)
        if secret is not None:
            changed.secrets = self._rotated(webhook, secret)
        place = self._places[webhook.tenant, id]
        await self._change(changed, place)
        return changed.shown(secret)

    async def rotate(self, caller: Caller, id: str) -> WebhookOut:
        """A new secret; the one before signs beside it for a day."""
        webhook, secret = self._owned(caller, id), make_secret()
        changed = msgspec.structs.replace(webhook, secrets=self._rotated(webhook, secret))
        await self._change(changed, self._places[webhook.tenant, id])
        return changed.shown(secret)

    async def remove(self, caller: Caller, id: str) -> None:
        webhook = self._owned(caller, id)
        key = (webhook.tenant, webhook.id)
        await self._end(key)
        letters = [(DEAD_LETTERS, webhook.tenant, letter, None) for letter, _ in await self._letters(webhook)]
        await self._broker.write_records([(WEBHOOKS, *key, None), (PLACES, *key, None), *letters])
        del self._webhooks[key], self._places[key]

    async def test(self, caller: Caller, id: str) -> Outcome:
        """Post an empty batch, signed as always, and say what came of it."""
        webhook = self._owned(caller, id)
        test_id = f"{webhook.id}.test.{randomness.token_hex(6)}"
        return await self._sender.send(webhook.url, webhook.secrets_at(time.time()), test_id, b"[]", CONTENT_TYPE)

    def attempts(self, caller: Caller, id: str) -> list[WebhookAttempt]:
        """The last requests, newest first."""
        webhook = self._owned(caller, id)
        return self._places[webhook.tenant, id].attempts[::-1]

    async def dead_letters(self, caller: Caller, id: str) -> list[DeadLetter]:
        """Oldest first."""
        return [letter for _, letter in await self._letters(self._owned(caller, id))]

    async def retry(self, caller: Caller, id: str, letter_id: str) -> Outcome:
        """Send a dead letter once more; it is gone if it is accepted."""
        webhook = self._owned(caller, id)
        letters = dict(await self._letters(webhook))
        if letter_id not in letters:
            raise not_found("dead letter", letter_id)
        body = msgspec.json.encode(letters[letter_id].events)
        secrets = webhook.secrets_at(time.time())
        outcome = await self._sender.send(webhook.url, secrets, letter_id, body, CONTENT_TYPE)
        if outcome.is_success:
            await self._broker.write_records([(DEAD_LETTERS, webhook.tenant, letter_id, None)])
        return outcome

    # --- inside ------------------------------------------------------------------------------------------------------

    def _owned(self, caller: Caller, id: str) -> WebhookRecord:
        webhook = self._webhooks.get((caller.tenant, id))
        if webhook is None or not caller.may_read(webhook.subscriber):
            raise not_found("webhook", id)
        return webhook

    def _check_number(self, caller: Caller) -> None:
        most, owner = self._broker.limits.webhooks_per_subscriber, (caller.tenant, caller.subscriber)
        known = (*self._webhooks.values(), *self._making.values())
        if sum((one.tenant, one.subscriber) == owner for one in known) >= most:
            raise Problem(409, "too_many", f"{caller.subscriber!r} has {most} webhooks, as many as it may; remove one")

    def _checked(self, given: WebhookIn) -> str:
        """The secret to use; raises for a URL or a secret that is not usable."""
        self._addresses_checked(given.url)
        try:
            return make_secret() if given.secret is None else check_secret(given.secret)
        except NearcastError as error:
            raise unusable(str(error), "secret") from None

    def _addresses_checked(self, url: str) -> None:
        try:
            self._addresses.check_url(url)
        except NearcastError as error:
            raise unusable(str(error), "url") from None

    @staticmethod
    def _rotated(webhook: WebhookRecord, secret: str) -> list[Secret]:
        now = time.time()
        before = [Secret(one, now + SECRET_OVERLAP_S) for one in webhook.secrets_at(now)[:1]]
        return [Secret(secret), *before]

    async def _letters(self, webhook: WebhookRecord) -> list[tuple[str, DeadLetter]]:
        decoded = (
            msgspec.json.decode(body, type=DeadLetterRecord)
            for tenant, _, body in await self._broker.read_records(DEAD_LETTERS)
            if tenant == webhook.tenant
        )
        mine = [(record.letter.id, record.letter) for record in decoded if record.webhook == webhook.id]
        return sorted(mine, key=lambda one: one[1].time)

    async def _keep(self, webhook: WebhookRecord, place: Place) -> None:
        key = (webhook.tenant, webhook.id)
        await self._broker.write_records(
            [(WEBHOOKS, *key, msgspec.json.encode(webhook)), (PLACES, *key, msgspec.json.encode(place))]
        )

    async def _change(self, changed: WebhookRecord, place: Place) -> None:
        key = (changed.tenant, changed.id)
        await self._end(key)
        # Whoever changes it wants to see it tried now.
        place.n_failed, place.next_time, place.n_dead_in_a_row = 0, 0.0, 0
        await self._keep(changed, place)
        self._webhooks[key] = changed
        self._begin(key)

    def _begin(self, key: Key) -> None:
        webhook = self._webhooks[key]
        if not webhook.is_enabled:
            return
        place = self._places.setdefault(key, Place(self._broker.latest))

        async def disable(reason: str) -> None:
            off = msgspec.structs.replace(self._webhooks[key], is_enabled=False, disabled_reason=reason)
            await self._keep(off, place)
            self._webhooks[key] = off

        worker = Worker(self._broker, self._sender, self._rules, self._pace, webhook, place, disable)
        self._tasks[key] = asyncio.create_task(_kept_running(worker, disable), name=f"webhook {webhook.id}")

    async def _end(self, key: Key) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _kept_running(worker: Worker, disable: Disable) -> None:
    while True:
        try:
            return await _run(worker, disable)
        except NearcastError as error:
            log.warning("webhook %s pauses for %g s: %s", worker.webhook.id, _STORE_PAUSE_S, error)
            await asyncio.sleep(_STORE_PAUSE_S)


async def _run(worker: Worker, disable: Disable) -> None:
    """What nobody thought of switches the webhook off, so that its owner sees it."""
    try:
        await worker.run()
    except NearcastError:
        raise
    except Exception as error:
        log.exception("webhook %s is switched off", worker.webhook.id)
        await disable(f"the server made a mistake ({type(error).__name__}: {error})"[:300])
