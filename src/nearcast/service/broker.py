"""`Broker`: what the routes, live streams and webhooks of the service talk to.

Live streams and webhooks are readers of the durable inbox with wake-ups: `open_inbox` once, then read with `read_events` after
a cursor and wait with `Feed.wait` for more. Resuming is reading after the last cursor; a gap is told by `EventPage.is_gap`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import msgspec
from pyroaring import BitMap

from nearcast.service.caller import Caller
from nearcast.service.commit.commit_batch import Receipt, check_live
from nearcast.service.commit.writer import Committed, Writer
from nearcast.service.gateway.delivery_reader import DeliveryReader
from nearcast.service.gateway.publishing import Gateway
from nearcast.service.inbox.event_reader import EventPage, EventRow, NotInMemory
from nearcast.service.inbox.inboxes import Inbox, Inboxes
from nearcast.service.insight import Insight
from nearcast.service.intake.bulk import check_lines
from nearcast.service.intake.decoding import MESSAGES, MOVES, SUBSCRIPTIONS
from nearcast.service.intake.messages import check_message, clock_of
from nearcast.service.intake.operations import (
    EndSubscription,
    Keep,
    Move,
    Operation,
    PauseSubscription,
    Publish,
    PutSubscriptions,
    RequestKey,
)
from nearcast.service.intake.subscriptions import Checked, check_subscription, subscription_out
from nearcast.service.limits import Limits
from nearcast.service.metrics import Metrics
from nearcast.service.observer import Observer
from nearcast.service.policies.delivery_limits import DeliveryPolicy
from nearcast.service.problems import Problem, forbidden, not_found, other_request, unusable
from nearcast.storage.batch import AuditRow, Batch, SubscriptionRow
from nearcast.storage.errors import StoreError
from nearcast.storage.store import Store
from nearcast.wire.api import (
    BulkResult,
    CurrentList,
    DryRunIn,
    DryRunOut,
    ExplainIn,
    ExplainOut,
    LineResult,
    MessageIn,
    MessageReceipt,
    MoveIn,
    MoveResult,
    StatsOut,
    SubscriptionIn,
    SubscriptionOut,
    SubscriptionPage,
    TopList,
)

__all__ = ["Broker", "EventPage", "EventRow", "Inbox"]

log = logging.getLogger(__name__)
_THREADS = 4
Result = TypeVar("Result")
Given = TypeVarTuple("Given")


class Broker:
    """Takes subscriptions, messages and moves, keeps them, and gives every inbox its events.

    Methods raise `service.problems.Problem` (status, code, message). All run on the event loop's thread; engines and store work
    in threads of their own.
    """

    def __init__(self, store: Store, folder: Path | None, limits: Limits, gateway: Gateway | None = None) -> None:
        """`folder` keeps snapshots of the matcher; None: every start builds it anew. `gateway` leads to a pipeline."""
        self.store, self.limits, self.metrics = store, limits, Metrics()
        self._writer = Writer(store, folder, limits, self._on_commit, gateway)
        self._deliveries = None if gateway is None else DeliveryReader(gateway, self._write)
        self._threads = ThreadPoolExecutor(_THREADS, "nearcast-reader")
        self._loop: asyncio.AbstractEventLoop
        self._inboxes: Inboxes
        self._insight: Insight
        self.observer: Observer
        self._n_store_bytes = 0
        self.is_ready = False
        self.load_failure: str | None = None

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load the engines; returns when ready."""
        self._loop = asyncio.get_running_loop()
        self._inboxes = await self.beside(Inboxes, self.store, self.limits.recent_bytes)
        self._insight = Insight(self.store, self._writer, self._inboxes, self.limits)
        self.observer = Observer(self.store, self._writer, self._inboxes, self._insight, self.metrics)
        await self.beside(self._writer.start)
        self.metrics.watch("nearcast_pending", "Messages and changes that wait for the writer", lambda: self._writer.n_pending)
        self.metrics.watch("nearcast_open_inboxes", "Inboxes that somebody reads", lambda: self._inboxes.n_open)
        self.metrics.watch("nearcast_store_bytes", "Bytes of the store", lambda: self._n_store_bytes)
        self.metrics.watch("nearcast_sequence", "The newest cursor", lambda: self.latest)
        if self._deliveries is not None:
            self._deliveries.start()
        self.is_ready = True

    async def start_or_tell(self) -> None:
        """As `start`; if it fails, `load_failure` tells why, and nothing is served."""
        try:
            await self.start()
        except Exception as error:  # the server stays up to tell it
            log.exception("the engines could not be loaded")
            self.load_failure = f"{type(error).__name__}: {error}"

    async def stop(self) -> None:
        """Finish what was accepted, write a snapshot, close feeds and the store."""
        if not self.is_ready:
            self._threads.shutdown()
            self.store.close()
            return
        self.is_ready = False
        self._inboxes.close_all()
        if self._deliveries is not None:
            await self._deliveries.stop()
        await self.beside(self._writer.stop)
        self._threads.shutdown()
        self.store.close()

    def end_streams(self) -> None:
        """Let whoever reads live go: the server is told to stop. From any thread, also before `start` is done."""
        if self.is_ready:
            self._loop.call_soon_threadsafe(self._inboxes.close_all)

    @property
    def failure(self) -> str | None:
        """Why writing does not work at present; None: it does."""
        return self._writer.failure or (self._deliveries.failure if self._deliveries is not None else None)

    async def beside(self, work: Callable[[*Given], Result], *given: *Given) -> Result:
        """Run something that blocks in another thread."""
        return await self._loop.run_in_executor(self._threads, work, *given)

    async def _write(self, operation: Operation) -> Any:
        operation.answer = self._loop.create_future()
        self._writer.submit(operation)
        answer = await operation.answer
        if isinstance(answer, Problem):
            raise answer
        return answer

    def _on_commit(self, committed: Committed) -> None:
        """Called by the writer, in its thread."""
        self._inboxes.going = committed.removed
        self._loop.call_soon_threadsafe(self._tell, committed)

    def _tell(self, committed: Committed) -> None:
        if committed.applied is not None:
            self._inboxes.committed(committed.applied)
            self.observer.note_moves(committed.applied.batch.places, committed.applied.sequence)
            if committed.applied.batch.page is not None:
                self.metrics.count_page(committed.applied.batch.page)
                self.metrics.count_matched(self._writer.engines, self._writer.engines.matched)
        if committed.removed != self._inboxes.removed:
            self._inboxes.forget_before(committed.removed)
        self._writer.settled([operation for operation, _ in committed.answers])
        for operation, answer in committed.answers:
            # Whoever asked may have gone away meanwhile.
            if not operation.answer.done():
                operation.answer.set_result(answer)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    async def put_subscription(self, caller: Caller, given: SubscriptionIn) -> tuple[SubscriptionOut, bool]:
        """Make or replace a subscription; True if it is new."""
        answer = (await self._write(PutSubscriptions(caller, [self._checked(caller, given)])))[0]
        if isinstance(answer, Problem):
            raise answer
        return subscription_out(answer[0]), answer[1]

    async def put_subscriptions(self, caller: Caller, body: bytes) -> BulkResult:
        """Bulk NDJSON of `SubscriptionIn`."""
        lines = await self.beside(
            check_lines, SUBSCRIPTIONS, body, self.limits.line_count, lambda given, _: self._checked(caller, given)
        )
        answers = await self._write(PutSubscriptions(caller, lines.good, n_bytes=len(body))) if lines.good else []
        for line, one, answer in zip(lines.line, lines.good, answers, strict=True):
            if isinstance(answer, Problem):
                lines.refuse(line, answer)
            elif one.given.id is None:
                lines.results[line] = LineResult(line, "ok", id=one.id)
        return lines.told(self.latest)

    def _checked(self, caller: Caller, given: SubscriptionIn) -> Checked:
        return check_subscription(caller, given, given.id or f"s-{secrets.token_hex(8)}", time.time())

    async def get_subscription(self, caller: Caller, id: str) -> SubscriptionOut:
        return subscription_out(await self._own_row(caller, id))

    async def _own_row(self, caller: Caller, id: str) -> SubscriptionRow:
        found = await self.beside(self.store.find_subscriptions, [(caller.tenant, id)])
        row = found.get((caller.tenant, id))
        if row is None or not caller.may_read(row.subscriber):
            raise not_found("subscription", id)
        return row

    async def list_subscriptions(
        self, caller: Caller, after: str | None = None, limit: int = 100, subscriber: str | None = None
    ) -> SubscriptionPage:
        """In the order of creation; an admin lists all of the tenant, or those of a subscriber."""
        if subscriber is not None and not caller.may_read(subscriber):
            raise forbidden(f"this key acts for {caller.subscriber!r} and cannot list those of {subscriber!r}")
        wanted = subscriber if caller.is_admin else caller.subscriber
        rows = await self.beside(self.store.list_subscriptions, caller.tenant, wanted, int(after or 0), limit + 1)
        page = SubscriptionPage([subscription_out(row) for row in rows[:limit]])
        if len(rows) > limit:
            page.next = str(rows[limit - 1].number)
        return page

    async def pause_subscription(self, caller: Caller, id: str, is_paused: bool) -> SubscriptionOut:
        return subscription_out(await self._write(PauseSubscription(caller, id, is_paused)))

    async def delete_subscription(self, caller: Caller, id: str) -> None:
        await self._write(EndSubscription(caller, id))

    # --- messages and moves ------------------------------------------------------------------------------------------

    async def publish(
        self, caller: Caller, message: MessageIn, idempotency_key: str | None = None, body: bytes | None = None
    ) -> MessageReceipt:
        """Match and keep one message (decoded from `body`); single posts are gathered into batches."""
        check_live(self._writer.engines, self.limits)
        posted = check_message(caller.tenant, message, clock_of(time.time(), self.limits), body)
        key = RequestKey.of(caller.tenant, idempotency_key, body or msgspec.json.encode(message))
        receipts: list[Receipt] = await self._write(Publish([posted], key, n_bytes=len(posted.body)))
        return MessageReceipt(receipts[0].id, str(receipts[0].sequence), receipts[0].is_repeat)

    async def publish_lines(self, caller: Caller, body: bytes, idempotency_key: str | None = None) -> BulkResult:
        """Bulk NDJSON of `MessageIn`."""
        check_live(self._writer.engines, self.limits)
        clock, tenant = clock_of(time.time(), self.limits), caller.tenant
        lines = await self.beside(
            check_lines, MESSAGES, body, self.limits.line_count, lambda given, line: check_message(tenant, given, clock, line)
        )
        key = RequestKey.of(tenant, idempotency_key, body)
        receipts: list[Receipt] = await self._write(Publish(lines.good, key, n_bytes=len(body))) if lines.good else []
        if len(receipts) != len(lines.good):
            # The same lines, of which some are past their time by now.
            raise other_request(idempotency_key)
        for line, receipt in zip(lines.line, receipts, strict=True):
            if receipt.is_repeat:
                lines.results[line] = LineResult(line, "repeat", id=receipt.id, cursor=str(receipt.sequence))
        return lines.told(receipts[-1].sequence if receipts else self.latest)

    async def move(self, caller: Caller, moves: Sequence[MoveIn], n_bytes: int = 0) -> list[MoveResult | Problem]:
        """`n_bytes` is the size of the request, if it is large."""
        answers: list[MoveResult | Problem] = await self._write(Move(caller, moves, n_bytes=n_bytes))
        return answers

    async def move_lines(self, caller: Caller, body: bytes) -> BulkResult:
        """Bulk NDJSON of `MoveIn`."""
        lines = await self.beside(check_lines, MOVES, body, self.limits.line_count, lambda given, _: given)
        answers = await self.move(caller, lines.good, len(body)) if lines.good else []
        for line, answer in zip(lines.line, answers, strict=True):
            if isinstance(answer, Problem):
                lines.refuse(line, answer)
            elif answer.status == "late":
                lines.results[line] = LineResult(line, "late", id=answer.subscription)
        return lines.told(self.latest)

    # --- inboxes -----------------------------------------------------------------------------------------------------

    async def open_inbox(self, caller: Caller, subscriber: str | None = None, ids: Sequence[str] | None = None) -> Inbox:
        """An inbox to read and to wait on; `close_inbox` it. `subscriber` None: the caller's own."""
        owner = subscriber or caller.subscriber
        if not caller.may_read(owner):
            raise forbidden(f"this key acts for {caller.subscriber!r} and cannot read the inbox of {owner!r}")
        if ids is None:
            # Open first: what is made while the store is asked comes to open inboxes only.
            inbox = self._inboxes.open(caller.tenant, owner, None, BitMap())
            try:
                self._inboxes.extend(inbox, await self.beside(self.store.numbers_of, caller.tenant, owner))
            except BaseException:
                self._inboxes.close(inbox)
                raise
            return inbox
        found = await self.beside(self.store.find_inboxes, caller.tenant, ids)
        for id in ids:
            row = found.get(id)
            if row is None or not caller.may_read(row.subscriber):
                raise not_found("subscription", id)
        numbers = BitMap([row.number for row in found.values()])
        return self._inboxes.open(caller.tenant, owner, ids, numbers)

    def close_inbox(self, inbox: Inbox) -> None:
        self._inboxes.close(inbox)

    async def read_events(self, inbox: Inbox, after: int, limit: int) -> EventPage:
        """Events after a cursor, oldest first; recent ones come from memory, without a thread."""
        numbers = inbox.feed.numbers
        try:
            return self._inboxes.read(numbers, after, limit, True)
        except NotInMemory:
            # A copy: the feed of all of a subscriber's may get another one meanwhile.
            return await self.beside(self._inboxes.read, numbers.copy(), after, limit, False)

    async def acknowledge(self, inbox: Inbox, name: str, cursor: int) -> int:
        """Keep a named cursor of the inbox (forwards only); the one that counts now."""
        if cursor > self.latest:
            raise unusable(f"the cursor {cursor} has not been given out yet; the newest is {self.latest}", "cursor")
        await self.keep(Batch(cursors=[(inbox.tenant, inbox.cursor_name(name), cursor)]))
        return await self.acknowledged(inbox, name)

    async def acknowledged(self, inbox: Inbox, name: str) -> int:
        """The named cursor, 0 if there is none."""
        return await self.beside(self.store.cursor, inbox.tenant, inbox.cursor_name(name))

    @property
    def latest(self) -> int:
        """The cursor of the newest event: live streams begin here unless they are told where."""
        return self._inboxes.recent.last

    def policy_of(self, number: int) -> DeliveryPolicy | None:
        """What pushes of a subscription are held to (`policies.options.policy_of_options`); None: every event is pushed.

        From memory: live streams and webhooks ask for every event.
        """
        return self._inboxes.policy_of(number)

    def webhook_of(self, number: int) -> str | None:
        """The webhook that the delivery options of a subscription name; from memory."""
        return self._inboxes.webhook_of(number)

    # --- small things kept for others ------------------------------------------------------------------------------------

    async def keep(self, batch: Batch) -> None:
        """Cursors, records, keys and audit entries; on disk, all of them, when it returns."""
        await self._write(Keep(batch))

    async def read_records(self, collection: str) -> list[tuple[str, str, bytes]]:
        """(tenant, id, body) of a whole collection."""
        return await self.beside(self.store.records, collection)

    async def write_records(self, changes: Sequence[tuple[str, str, str, bytes | None]]) -> None:
        """(collection, tenant, id, body), body None to delete; on disk, all of them, when it returns."""
        await self.keep(Batch(records=[*changes]))

    async def audit(self, caller: Caller, action: str, target: str, detail: str = "") -> None:
        """Keep who did what."""
        await self.keep(Batch(audit=[AuditRow(time.time(), caller.tenant, caller.key_id, action, target, detail)]))

    # --- insight -----------------------------------------------------------------------------------------------------

    async def top(self, caller: Caller, id: str) -> TopList:
        """The list of a ranked subscription."""
        return await self.beside(self._insight.top, await self._own_row(caller, id))

    async def current(self, caller: Caller, id: str) -> CurrentList:
        """The result of a moving subscription."""
        return await self.beside(self._insight.current, await self._own_row(caller, id))

    async def explain(self, caller: Caller, given: ExplainIn) -> ExplainOut:
        return await self.beside(self._insight.explain, await self._own_row(caller, given.subscription), given)

    async def dry_run(self, caller: Caller, given: DryRunIn) -> DryRunOut:
        checked = self._checked(caller, given.subscription)
        return await self.beside(self._insight.dry_run, checked, given.messages)

    async def stats(self, caller: Caller) -> StatsOut:
        return await self.beside(self._insight.stats, caller.tenant, caller.is_operator)

    async def figures(self) -> bytes:
        """What is counted, for Prometheus. The store may take its time to tell its size: it is asked beside, not in between."""
        with suppress(StoreError):
            if self.is_ready:
                self._n_store_bytes = await self.beside(self.store.database.n_bytes)
        return self.metrics.text()
