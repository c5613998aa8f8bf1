"""Live streams: the durable inbox, pushed over WebSocket or as server-sent events while a client is connected.

A connection is a reader of the inbox with wake-ups (`stream_reader.py`). It never queues: what a slow client has not taken
yet stays in the inbox, on disk, and is read when the client is ready for it. So a client costs one frame of memory however far
behind it is, and slows nobody else. Resuming is reading after a cursor; where retention has removed what a cursor asks for, the
client is told by an event of type `io.nearcast.gap`. Events that come close together go out in one frame, since a frame costs
far more than an event in it. `opening.py` reads what a client asks for, `websocket.py` and `sse.py` put frames on the wire,
`asyncapi.py` describes them.
"""
