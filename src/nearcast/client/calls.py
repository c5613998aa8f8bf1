"""Every request of the API: what is sent where, and the struct that comes back. Knows no socket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from nearcast.client.errors import ApiError
from nearcast.service import webhook_wire, wire

Answer = TypeVar("Answer")
NDJSON = "application/x-ndjson"
JSON = "application/json"
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request. `is_repeatable`: sending it twice does no harm, so it is sent again when no answer came."""

    method: str
    path: str
    answer: type[Answer]
    body: bytes | None = None
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    is_repeatable: bool = True


def read_answer(call: Call[Answer], status: int, headers: Any, body: bytes) -> Answer:
    """The struct of a good answer; raises ApiError for every other."""
    if 200 <= status < 300:
        if call.answer is type(None):
            return None
        try:
            return msgspec.json.decode(body, type=call.answer)
        except msgspec.MsgspecError as error:
            raise ApiError(status, "unreadable", f"the answer to {call.path} is not of this API: {error}") from None
    raise _refusal(status, headers, body)


def _refusal(status: int, headers: Any, body: bytes) -> ApiError:
    given = headers.get("retry-after")
    retry_after_s = float(given) if given is not None and given.isdigit() else None
    try:
        error = msgspec.json.decode(body, type=wire.ErrorOut).error
    except msgspec.MsgspecError:
        shown = body[:200].decode(errors="replace")
        said = f"answered {status} and not in the words of this API: {shown!r}"
        return ApiError(status, "unreadable", said, None, retry_after_s)
    return ApiError(status, error.code, error.message, error.where, retry_after_s)


def _json(method: str, path: str, given: Any, answer: type[Answer], is_repeatable: bool = True) -> Call[Answer]:
    return Call(method, path, answer, _encode(given), headers={"content-type": JSON}, is_repeatable=is_repeatable)


def _get(path: str, answer: type[Answer], **params: object) -> Call[Answer]:
    return Call("GET", path, answer, params={name: str(value) for name, value in params.items() if value is not None})


def _lines(path: str, given: Iterable[Any], idempotency_key: str | None = None) -> Call[wire.BulkResult]:
    headers = {"content-type": NDJSON}
    if idempotency_key is not None:
        headers["idempotency-key"] = idempotency_key
    body = given if isinstance(given, bytes) else _encode_lines(list(given))
    return Call("POST", path, wire.BulkResult, body, headers=headers, is_repeatable=idempotency_key is not None)


# --- subscriptions -----------------------------------------------------------------------------------------------------


def put_subscription(given: wire.SubscriptionIn) -> Call[wire.SubscriptionOut]:
    if given.id is None:
        return _json("POST", "/v1/subscriptions", given, wire.SubscriptionOut, is_repeatable=False)
    return _json("PUT", f"/v1/subscriptions/{quote(given.id)}", given, wire.SubscriptionOut)


def put_subscriptions(given: Iterable[wire.SubscriptionIn] | bytes) -> Call[wire.BulkResult]:
    return _lines("/v1/subscriptions/bulk", given)


def get_subscription(id: str) -> Call[wire.SubscriptionOut]:
    return _get(f"/v1/subscriptions/{quote(id)}", wire.SubscriptionOut)


def list_subscriptions(after: str | None, limit: int) -> Call[wire.SubscriptionPage]:
    return _get("/v1/subscriptions", wire.SubscriptionPage, after=after, limit=limit)


def pause_subscription(id: str, is_paused: bool) -> Call[wire.SubscriptionOut]:
    return _json("PATCH", f"/v1/subscriptions/{quote(id)}", wire.SubscriptionChange(is_paused), wire.SubscriptionOut)


def delete_subscription(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/subscriptions/{quote(id)}", type(None))


# --- messages and moves ------------------------------------------------------------------------------------------------


def publish(given: wire.MessageIn, idempotency_key: str) -> Call[wire.MessageReceipt]:
    headers = {"content-type": JSON, "idempotency-key": idempotency_key}
    return Call("POST", "/v1/messages", wire.MessageReceipt, _encode(given), headers=headers)


def publish_lines(given: Iterable[wire.MessageIn] | bytes, idempotency_key: str) -> Call[wire.BulkResult]:
    return _lines("/v1/messages/bulk", given, idempotency_key)


def move(given: wire.MoveIn) -> Call[wire.MoveResult]:
    return _json("POST", "/v1/locations", given, wire.MoveResult)


def move_lines(given: Iterable[wire.MoveIn] | bytes) -> Call[wire.BulkResult]:
    return _lines("/v1/locations/bulk", given)


# --- inbox -------------------------------------------------------------------------------------------------------------


def read_inbox(
    after: str | None, limit: int, subscriptions: Sequence[str] | None, subscriber: str | None
) -> Call[wire.InboxPage]:
    ids = None if subscriptions is None else ",".join(subscriptions)
    return _get("/v1/inbox", wire.InboxPage, after=after, limit=limit, subscriptions=ids, subscriber=subscriber)


def acknowledge(cursor: str) -> Call[wire.AckResult]:
    return _json("POST", "/v1/inbox/ack", wire.Ack(cursor), wire.AckResult)


# --- insight -----------------------------------------------------------------------------------------------------------


def top(subscription: str) -> Call[wire.TopList]:
    return _get(f"/v1/subscriptions/{quote(subscription)}/top", wire.TopList)


def current(subscription: str) -> Call[wire.CurrentList]:
    return _get(f"/v1/subscriptions/{quote(subscription)}/current", wire.CurrentList)


def explain(given: wire.ExplainIn) -> Call[wire.ExplainOut]:
    return _json("POST", "/v1/explain", given, wire.ExplainOut)


def dry_run(given: wire.DryRunIn) -> Call[wire.DryRunOut]:
    return _json("POST", "/v1/dry-run", given, wire.DryRunOut)


def stats() -> Call[wire.StatsOut]:
    return _get("/v1/stats", wire.StatsOut)


# --- webhooks ----------------------------------------------------------------------------------------------------------


def make_webhook(given: webhook_wire.WebhookIn) -> Call[webhook_wire.WebhookOut]:
    return _json("POST", "/v1/webhooks", given, webhook_wire.WebhookOut, is_repeatable=False)


def replace_webhook(id: str, given: webhook_wire.WebhookIn) -> Call[webhook_wire.WebhookOut]:
    return _json("PUT", f"/v1/webhooks/{quote(id)}", given, webhook_wire.WebhookOut)


def list_webhooks() -> Call[webhook_wire.WebhookList]:
    return _get("/v1/webhooks", webhook_wire.WebhookList)


def get_webhook(id: str) -> Call[webhook_wire.WebhookOut]:
    return _get(f"/v1/webhooks/{quote(id)}", webhook_wire.WebhookOut)


def delete_webhook(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/webhooks/{quote(id)}", type(None))


def rotate_secret(id: str) -> Call[webhook_wire.WebhookOut]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/secret", webhook_wire.WebhookOut, is_repeatable=False)


def test_webhook(id: str) -> Call[webhook_wire.WebhookOutcome]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/test", webhook_wire.WebhookOutcome)


def webhook_attempts(id: str) -> Call[webhook_wire.WebhookHistory]:
    return _get(f"/v1/webhooks/{quote(id)}/attempts", webhook_wire.WebhookHistory)


def dead_letters(id: str) -> Call[webhook_wire.DeadLetterList]:
    return _get(f"/v1/webhooks/{quote(id)}/dead-letters", webhook_wire.DeadLetterList)


def retry_dead_letter(id: str, letter: str) -> Call[webhook_wire.WebhookOutcome]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/dead-letters/{quote(letter)}/retry", webhook_wire.WebhookOutcome)


# --- keys --------------------------------------------------------------------------------------------------------------


def make_key(given: wire.KeyIn) -> Call[wire.KeyOut]:
    return _json("POST", "/v1/keys", given, wire.KeyOut, is_repeatable=False)


def list_keys() -> Call[wire.KeyList]:
    return _get("/v1/keys", wire.KeyList)


def delete_key(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/keys/{quote(id)}", type(None))
