"""Durable state of the service: nothing acknowledged is lost.

`open_store` opens a file (SQLite, write-ahead log, every commit flushed) or a PostgreSQL database by its URL. One thread
writes: it hands over a `Batch`, and when `Store.write` returns the batch is on disk as a whole. Any thread reads.

Messages are kept in pages, one for each commit that brought some. A page holds its messages as they are delivered, and who they
concern: the subscriptions it reaches as one compressed bitmap, and for each of those where in the page its events are. So a
delivery costs a few bytes and no row, and reading the inbox of a subscription skips every page whose bitmap does not have it.
Above the pages are groups of pages with the union of their bitmaps, so that whole groups are skipped at once.
"""
