"""`/v1/webhooks`: where events are posted, what became of the requests, what could not be delivered."""

from __future__ import annotations

from litestar import delete, get, post, put

from nearcast.service.auth.guards import SUBSCRIBER, broker_of, caller_of
from nearcast.service.http.error_responses import DOCUMENTED, AnyRequest
from nearcast.service.webhooks.registry import Webhooks
from nearcast.service.webhooks.sending import Outcome
from nearcast.wire.api import Name
from nearcast.wire.webhooks import DeadLetterList, WebhookHistory, WebhookIn, WebhookList, WebhookOut, WebhookOutcome

_OPT = {"roles": SUBSCRIBER}


@post("/webhooks", opt=_OPT, responses=DOCUMENTED, summary="Make a webhook")
async def make_webhook(request: AnyRequest, data: WebhookIn) -> WebhookOut:
    """Subscriptions name it in their delivery options. The secret is in this answer and nowhere else."""
    made = await webhooks_of(request).make(caller_of(request), data)
    await broker_of(request).audit(caller_of(request), "webhook.create", made.id, made.url)
    return made


@get("/webhooks", opt=_OPT, responses=DOCUMENTED, summary="List webhooks")
async def list_webhooks(request: AnyRequest) -> WebhookList:
    return WebhookList(webhooks_of(request).all_of(caller_of(request)))


@get("/webhooks/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="One webhook")
async def get_webhook(request: AnyRequest, id: Name) -> WebhookOut:
    return webhooks_of(request).get(caller_of(request), id)


@put("/webhooks/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="Change a webhook, or switch it on again")
async def replace_webhook(request: AnyRequest, id: Name, data: WebhookIn) -> WebhookOut:
    """It goes on where it stood."""
    changed = await webhooks_of(request).replace(caller_of(request), id, data)
    await broker_of(request).audit(caller_of(request), "webhook.replace", id, changed.url)
    return changed


@delete("/webhooks/{id:str}", opt=_OPT, responses=DOCUMENTED, summary="Remove a webhook")
async def delete_webhook(request: AnyRequest, id: Name) -> None:
    await webhooks_of(request).remove(caller_of(request), id)
    await broker_of(request).audit(caller_of(request), "webhook.delete", id)


@post("/webhooks/{id:str}/secret", opt=_OPT, responses=DOCUMENTED, status_code=200, summary="Give a webhook a new secret")
async def rotate_secret(request: AnyRequest, id: Name) -> WebhookOut:
    """The one before signs beside it for a day."""
    changed = await webhooks_of(request).rotate(caller_of(request), id)
    await broker_of(request).audit(caller_of(request), "webhook.rotate", id)
    return changed


@post("/webhooks/{id:str}/test", opt=_OPT, responses=DOCUMENTED, status_code=200, summary="Post an empty batch now")
async def test_webhook(request: AnyRequest, id: Name) -> WebhookOutcome:
    return _told(await webhooks_of(request).test(caller_of(request), id))


@get("/webhooks/{id:str}/attempts", opt=_OPT, responses=DOCUMENTED, summary="The last requests of a webhook, newest first")
async def list_attempts(request: AnyRequest, id: Name) -> WebhookHistory:
    return WebhookHistory(webhooks_of(request).attempts(caller_of(request), id))


@get("/webhooks/{id:str}/dead-letters", opt=_OPT, responses=DOCUMENTED, summary="What a webhook could not deliver")
async def list_dead_letters(request: AnyRequest, id: Name) -> DeadLetterList:
    return DeadLetterList(await webhooks_of(request).dead_letters(caller_of(request), id))


@post(
    "/webhooks/{id:str}/dead-letters/{letter:str}/retry",
    opt=_OPT,
    responses=DOCUMENTED,
    status_code=200,
    summary="Send a dead letter once more",
)
async def retry_dead_letter(request: AnyRequest, id: Name, letter: Name) -> WebhookOutcome:
    """It is gone if it is accepted."""
    return _told(await webhooks_of(request).retry(caller_of(request), id, letter))


def _told(outcome: Outcome) -> WebhookOutcome:
    return WebhookOutcome(outcome.is_success, outcome.reason, outcome.status)


def webhooks_of(request: AnyRequest) -> Webhooks:
    webhooks: Webhooks = request.app.state.webhooks
    return webhooks


ROUTES = [
    make_webhook,
    list_webhooks,
    get_webhook,
    replace_webhook,
    delete_webhook,
    rotate_secret,
    test_webhook,
    list_attempts,
    list_dead_letters,
    retry_dead_letter,
]
