"""Every request of the API: what is sent where, and the struct that comes back. Knows no socket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from nearcast.client.errors import ApiError
from nearcast.wire import api
from nearcast.wire.webhooks import DeadLetterList, WebhookHistory, WebhookIn, WebhookList, WebhookOut, WebhookOutcome

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
        error = msgspec.json.decode(body, type=api.ErrorOut).error
    except msgspec.MsgspecError:
        shown = body[:200].decode(errors="replace")
        said = f"answered {status} and not in the words of this API: {shown!r}"
        return ApiError(status, "unreadable", said, None, retry_after_s)
    return ApiError(status, error.code, error.message, error.where, retry_after_s)


def _json(method: str, path: str, given: Any, answer: type[Answer], is_repeatable: bool = True) -> Call[Answer]:
    return Call(method, path, answer, _encode(given), headers={"content-type": JSON}, is_repeatable=is_repeatable)


def _get(path: str, answer: type[Answer], **params: object) -> Call[Answer]:
    return Call("GET", path, answer, params={name: str(value) for name, value in params.items() if value is not None})


def _lines(path: str, given: Iterable[Any], idempotency_key: str | None = None) -> Call[api.BulkResult]:
    headers = {"content-type": NDJSON}
    if idempotency_key is not None:
        headers["idempotency-key"] = idempotency_key
    body = given if isinstance(given, bytes) else _encode_lines(list(given))
    return Call("POST", path, api.BulkResult, body, headers=headers, is_repeatable=idempotency_key is not None)


# --- subscriptions -----------------------------------------------------------------------------------------------------


def put_subscription(given: api.SubscriptionIn) -> Call[api.SubscriptionOut]:
    if given.id is None:
        return _json("POST", "/v1/subscriptions", given, api.SubscriptionOut, is_repeatable=False)
    return _json("PUT", f"/v1/subscriptions/{quote(given.id)}", given, api.SubscriptionOut)


def put_subscriptions(given: Iterable[api.SubscriptionIn] | bytes) -> Call[api.BulkResult]:
    return _lines("/v1/subscriptions/bulk", given)


def get_subscription(id: str) -> Call[api.SubscriptionOut]:
    return _get(f"/v1/subscriptions/{quote(id)}", api.SubscriptionOut)


def list_subscriptions(after: str | None, limit: int) -> Call[api.SubscriptionPage]:
    return _get("/v1/subscriptions", api.SubscriptionPage, after=after, limit=limit)


def pause_subscription(id: str, is_paused: bool) -> Call[api.SubscriptionOut]:
    return _json("PATCH", f"/v1/subscriptions/{quote(id)}", api.SubscriptionChange(is_paused), api.SubscriptionOut)


def delete_subscription(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/subscriptions/{quote(id)}", type(None))


# --- messages and moves ------------------------------------------------------------------------------------------------


def publish(given: api.MessageIn, idempotency_key: str) -> Call[api.MessageReceipt]:
    headers = {"content-type": JSON, "idempotency-key": idempotency_key}
    return Call("POST", "/v1/messages", api.MessageReceipt, _encode(given), headers=headers)


def publish_lines(given: Iterable[api.MessageIn] | bytes, idempotency_key: str) -> Call[api.BulkResult]:
    return _lines("/v1/messages/bulk", given, idempotency_key)


def move(given: api.MoveIn) -> Call[api.MoveResult]:
    return _json("POST", "/v1/locations", given, api.MoveResult)


def move_lines(given: Iterable[api.MoveIn] | bytes) -> Call[api.BulkResult]:
    return _lines("/v1/locations/bulk", given)


# --- inbox -------------------------------------------------------------------------------------------------------------


def read_inbox(
    after: str | None, limit: int, subscriptions: Sequence[str] | None, subscriber: str | None
) -> Call[api.InboxPage]:
    ids = None if subscriptions is None else ",".join(subscriptions)
    return _get("/v1/inbox", api.InboxPage, after=after, limit=limit, subscriptions=ids, subscriber=subscriber)


def acknowledge(cursor: str) -> Call[api.AckResult]:
    return _json("POST", "/v1/inbox/ack", api.Ack(cursor), api.AckResult)


# --- insight -----------------------------------------------------------------------------------------------------------


def top(subscription: str) -> Call[api.TopList]:
    return _get(f"/v1/subscriptions/{quote(subscription)}/top", api.TopList)


def current(subscription: str) -> Call[api.CurrentList]:
    return _get(f"/v1/subscriptions/{quote(subscription)}/current", api.CurrentList)


def explain(given: api.ExplainIn) -> Call[api.ExplainOut]:
    return _json("POST", "/v1/explain", given, api.ExplainOut)


def dry_run(given: api.DryRunIn) -> Call[api.DryRunOut]:
    return _json("POST", "/v1/dry-run", given, api.DryRunOut)


def stats() -> Call[api.StatsOut]:
    return _get("/v1/stats", api.StatsOut)


# --- webhooks ----------------------------------------------------------------------------------------------------------


def make_webhook(given: WebhookIn) -> Call[WebhookOut]:
    return _json("POST", "/v1/webhooks", given, WebhookOut, is_repeatable=False)


def replace_webhook(id: str, given: WebhookIn) -> Call[WebhookOut]:
    return _json("PUT", f"/v1/webhooks/{quote(id)}", given, WebhookOut)


def list_webhooks() -> Call[WebhookList]:
    return _get("/v1/webhooks", WebhookList)


def get_webhook(id: str) -> Call[WebhookOut]:
    return _get(f"/v1/webhooks/{quote(id)}", WebhookOut)


def delete_webhook(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/webhooks/{quote(id)}", type(None))


def rotate_secret(id: str) -> Call[WebhookOut]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/secret", WebhookOut, is_repeatable=False)


def test_webhook(id: str) -> Call[WebhookOutcome]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/test", WebhookOutcome)


def webhook_attempts(id: str) -> Call[WebhookHistory]:
    return _get(f"/v1/webhooks/{quote(id)}/attempts", WebhookHistory)


def dead_letters(id: str) -> Call[DeadLetterList]:
    return _get(f"/v1/webhooks/{quote(id)}/dead-letters", DeadLetterList)


def retry_dead_letter(id: str, letter: str) -> Call[WebhookOutcome]:
    return Call("POST", f"/v1/webhooks/{quote(id)}/dead-letters/{quote(letter)}/retry", WebhookOutcome)


# --- keys --------------------------------------------------------------------------------------------------------------


def make_key(given: api.KeyIn) -> Call[api.KeyOut]:
    return _json("POST", "/v1/keys", given, api.KeyOut, is_repeatable=False)


def list_keys() -> Call[api.KeyList]:
    return _get("/v1/keys", api.KeyList)


def delete_key(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/keys/{quote(id)}", type(None))
