"""What moves, arrivals and expiry of messages cost, and what subscribers with safe regions send."""

from __future__ import annotations

from benchmarks.metrics.matching import us_per_message
from benchmarks.record import Metric, Record


def us_per_move(record: Record) -> float | None:
    """In the best step."""
    seconds, n = record.steps("step_move_seconds"), record.steps("step_moves")
    return float(1e6 * (seconds / n).min()) if seconds.size and n.min() else None


def us_per_expiry(record: Record) -> float | None:
    seconds = record.steps("step_expiry_seconds")
    return float(1e6 * seconds.min() / record.n_messages) if seconds.size else None


def us_per_move_and_message(record: Record) -> float | None:
    move, message, expiry = us_per_move(record), us_per_message(record), us_per_expiry(record)
    return move + message + expiry if move is not None and message is not None and expiry is not None else None


def updates_per_move(record: Record) -> float | None:
    return _per_move(record, "step_move_updates")


def candidates_per_move(record: Record) -> float | None:
    return _per_move(record, "step_move_candidates")


def growth_percent(record: Record) -> float | None:
    n_bytes = record.steps("step_bytes")
    half = n_bytes.size // 2
    return float(100 * (n_bytes[half:].max() / n_bytes[:half].max() - 1)) if half else None


def ms_per_step(record: Record) -> float | None:
    seconds = record.steps("step_seconds")
    return float(1e3 * seconds.mean()) if seconds.size else None


def traffic_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "reports", "contacts", "safe_regions")


def reports_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "reports")


def contacts_per_step(record: Record) -> float | None:
    return _sent_per_step(record, "contacts")


def _per_move(record: Record, fact: str) -> float | None:
    counts, n = record.steps(fact), record.steps("step_moves")
    return float(counts.sum() / n.sum()) if counts.size and n.sum() else None


def _sent_per_step(record: Record, *names: str) -> float | None:
    traffic, n = record.facts.get("traffic"), record.number("n_subscriptions")
    return sum(float(traffic[name]) for name in names) / n if traffic is not None and n else None


MOVING = (
    Metric(
        "us_per_move",
        "µs per move",
        "to another place, all changes reported; best step",
        "lower",
        us_per_move,
    ),
    Metric("us_per_expiry", "µs per expired message", "taking it out of all results; best step", "lower", us_per_expiry),
    Metric(
        "us_per_move_and_message",
        "µs per move and message",
        "a move, an arrival and an expiry together",
        "lower",
        us_per_move_and_message,
    ),
    Metric("updates_per_move", "changes per move", "messages that enter or leave its result", "neither", updates_per_move),
    Metric("candidates_per_move", "candidates per move", "messages verified one by one", "lower", candidates_per_move),
    Metric(
        "growth_percent",
        "growth of memory, %",
        "largest size in the second half of the steps, against the first half",
        "lower",
        growth_percent,
    ),
    Metric("ms_per_step", "ms per step", "moves, expiry and arrivals of one step: what the engine takes", "lower", ms_per_step),
    Metric(
        "traffic_per_step",
        "traffic per step",
        "reports, contacts and safe regions sent, per subscriber and step",
        "lower",
        traffic_per_step,
    ),
    Metric("reports_per_step", "reports per step", "moves reported, per subscriber and step", "lower", reports_per_step),
    Metric("contacts_per_step", "contacts per step", "subscribers asked, per subscriber and step", "lower", contacts_per_step),
)
