"""Webhooks: the durable inbox, posted to a URL of the subscriber: signed, in order, at least once.

A webhook reads its subscriber's inbox (`push/stream_reader.py`) and takes the events of the subscriptions that name it.
`Worker` (`worker.py`) posts a frame of events as one request (CloudEvents batch), and posts nothing else before that request
was accepted or given up: so order is kept. Where it stands is in the store (`state.py`) and written before the next request, so
after a crash at most the last request is sent again, with the same event ids. `retrying.py` says how long to wait,
`wire/signatures.py` signs after Standard Webhooks, `addresses.py` keeps requests out of the network the server itself lives in.
What is given up becomes a dead letter; several in a row switch the webhook off, and it says why.
`Webhooks` (`registry.py`) makes, changes and removes them; `routes.py` puts that under `/v1/webhooks`.
"""
