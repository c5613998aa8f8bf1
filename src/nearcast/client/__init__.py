"""Talk to a nearcast server from Python, with or without asyncio.

    from nearcast.client import Client

    with Client("http://localhost:8080", key="nck_...") as client:
        client.subscribe(keywords=["hail"], region=nc.Circle(-93.3, 37.2, 50_000), id="hail")
        for event in client.listen():
            print(event.data.message)

`Client` (`blocking.py`) and `AsyncClient` (`asynchronous.py`) have the same methods; what a method sends and expects is said
once, in `calls.py`. Structs are those of the wire (`nearcast.wire.api`), errors are `ApiError` in the words of the server.
`listen` connects again by itself and goes on after the last event it gave (`resuming.py`), so that none is lost or comes twice.
`verify_webhook` is for receivers of webhooks.
"""

from nearcast.client.asynchronous import AsyncClient
from nearcast.client.blocking import Client
from nearcast.client.errors import ApiError, ServerUnreachable
from nearcast.wire.signatures import SignatureError
from nearcast.wire.signatures import verify as verify_webhook

__all__ = ["ApiError", "AsyncClient", "Client", "ServerUnreachable", "SignatureError", "verify_webhook"]
