"""Subscriptions are put into lists that are sorted by their numbers, and taken out again."""

from __future__ import annotations

from nearcast.kernels.compile import kernel
from nearcast.kernels.pools import chunk_capacity, give_back, take_chunk
from nearcast.papers.ranked.covering_quadtree.layout import FILED, POSTINGS
from nearcast.papers.ranked.kernels.score_bounds import rounded_up


@kernel
def post_many(lists, subscribers, numbers, per_word, owners, done):
    """Post subscriptions from position `done` on; returns where it stopped for lack of room.

    `owners` are the lists of all of them, `per_word` for each keyword.
    """
    at = 0
    for i in range(done):
        at += per_word * subscribers.n_words[numbers[i]]
    for i in range(done, numbers.size):
        s = numbers[i]
        n_lists = per_word * subscribers.n_words[s]
        needed = 0
        for owner in owners[at : at + n_lists]:
            needed += chunk_capacity(lists.size[owner] + 1)
        if lists.used[POSTINGS] + needed > lists.subscriber.size:
            return i
        share = rounded_up((1.0 - subscribers.spatial_weight[s]) / subscribers.length[s])
        for owner in owners[at : at + n_lists]:
            post(lists, owner, s, share)
        lists.used[FILED] += 1
        at += n_lists
    return numbers.size


@kernel
def post(lists, owner, s, share):
    """Put a subscription into one list."""
    size, room, first = lists.size[owner], lists.room[owner], lists.first[owner]
    subscriber, shares = lists.subscriber, lists.share
    if size == room:
        grown = chunk_capacity(size + 1)
        moved = take_chunk(lists.free, subscriber, lists.used, POSTINGS, grown)
        for i in range(size):
            subscriber[moved + i], shares[moved + i] = subscriber[first + i], shares[first + i]
        give_back(lists.free, subscriber, first, room)
        lists.first[owner], lists.room[owner] = moved, grown
        first = moved
    at = first + size
    while at > first and subscriber[at - 1] > s:
        subscriber[at], shares[at] = subscriber[at - 1], shares[at - 1]
        at -= 1
    subscriber[at], shares[at] = s, share
    lists.size[owner] = size + 1


@kernel
def withdraw_many(lists, subscribers, numbers, per_word, owners):
    """Take subscriptions out of their lists."""
    at = 0
    for i in range(numbers.size):
        s = numbers[i]
        n_lists = per_word * subscribers.n_words[s]
        for owner in owners[at : at + n_lists]:
            withdraw(lists, owner, s)
        lists.used[FILED] -= 1
        at += n_lists


@kernel
def withdraw(lists, owner, s):
    """Take a subscription out of one list."""
    subscriber, shares = lists.subscriber, lists.share
    low, end = lists.first[owner], lists.first[owner] + lists.size[owner]
    high = end
    while low < high:
        middle = (low + high) // 2
        if subscriber[middle] < s:
            low = middle + 1
        else:
            high = middle
    for at in range(low, end - 1):
        subscriber[at], shares[at] = subscriber[at + 1], shares[at + 1]
    lists.size[owner] -= 1
