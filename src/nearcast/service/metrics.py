"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nearcast.storage.pages import Page

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """One registry for each server, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.messages = Counter("nearcast_messages", "Messages kept", registry=self.registry)
        self.events = Counter("nearcast_events", "Events that reached subscriptions", registry=self.registry)
        self.matched = Counter(
            "nearcast_matched_messages", "Messages matched with boolean subscriptions", registry=self.registry
        )
        self.candidates = Counter("nearcast_candidates", "Boolean subscriptions tested for messages", registry=self.registry)
        self.matches = Counter("nearcast_matches", "Deliveries to boolean subscriptions", registry=self.registry)
        self._counted: tuple[object, tuple[int, int, int]] = (None, (0, 0, 0))
        self.commits = Counter("nearcast_commits", "Commits that brought messages or events", registry=self.registry)
        self.requests = Counter(
            "nearcast_requests", "Requests by route and status", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "nearcast_request_seconds", "Time to answer", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.refused = Counter("nearcast_refused", "Requests refused, by code", ("code",), registry=self.registry)
        self.live_frames = Counter("nearcast_live_frames", "Frames sent to live connections", registry=self.registry)
        self.live_events = Counter("nearcast_live_events", "Events sent to live connections", registry=self.registry)
        self.webhook_requests = Counter(
            "nearcast_webhook_requests", "Requests of webhooks, by outcome", ("outcome",), registry=self.registry
        )

    def count_frame(self, n_events: int) -> None:
        self.live_frames.inc()
        self.live_events.inc(n_events)

    def watch(self, name: str, help: str, value: Callable[[], float]) -> None:
        """A gauge that is read when somebody asks."""
        Gauge(name, help, registry=self.registry).set_function(value)

    def count_page(self, page: Page) -> None:
        self.messages.inc(page.n_messages)
        self.events.inc(page.n_events)
        self.commits.inc()

    def count_matched(self, engines: object, matched: tuple[int, int, int]) -> None:
        """`matched` counts since these engines were loaded (`Engines.matched`); engines may be loaded again."""
        before = self._counted[1] if engines is self._counted[0] else (0, 0, 0)
        for counter, total, counted in zip((self.matched, self.candidates, self.matches), matched, before, strict=True):
            counter.inc(total - counted)
        self._counted = engines, matched

    def text(self) -> bytes:
        return generate_latest(self.registry)
