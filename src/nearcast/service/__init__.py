"""The server: location-aware publish/subscribe over HTTP, with everything acknowledged kept on disk.

A request becomes an operation (`operations`), is checked beside the event loop (`standing`, `posting`), and waits for the one
writer (`writer`). The writer takes what has gathered, lets the engines match it (`applying`, `engines`), and hands one batch to
the store; when that is on disk, all who waited are answered and the readers of inboxes are woken (`feed`). Events are read from
the log of pages (`inbox_reading`), the recent ones from memory. Live streams and webhooks are such readers.
"""
