"""Batches of domain objects as flat arrays: what indexes and engines actually work on.

`model` says what a message or a subscription is; this package holds many of them: words become int32 ids (`vocabulary`),
ids of subscriptions become dense numbers (`identifiers`), messages become a `MessageBatch`, subscriptions become clauses
in a `ClauseStore`, circles and polygons become a `ShapeStore`. Everything is NumPy arrays, so that it can be saved as a folder
of `.npy` files (`folder`), opened by memory map and shared between processes.
"""
