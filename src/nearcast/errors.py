"""The errors that nearcast raises on purpose: one base class, one class per cause.

A message says what was given, what was expected and what to do.
"""

from __future__ import annotations


class NearcastError(ValueError):
    """Base of every error nearcast raises on purpose."""


class RegionError(NearcastError):
    """A region, a location or a coordinate is not usable."""


class KeywordError(NearcastError):
    """A keyword is empty, too long, of the wrong type, or there are too many of them."""


class InterestError(NearcastError):
    """An interest does not parse, or grows past its limits.

    `position` is the offset of the first character that is wrong, or None.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class SubscriptionError(NearcastError):
    """A subscription is not usable as a whole (its id, its combination of fields)."""


class MessageError(NearcastError):
    """A message is not usable as a whole (its id, its times, its combination of fields)."""


class SchemaError(NearcastError):
    """A table lacks a column, has an unknown one, or a column has the wrong type."""


class IndexParameterError(NearcastError):
    """An index is unknown, or was given a parameter or value it does not take."""


class StoredFormatError(NearcastError):
    """A saved folder is missing, incomplete, damaged, or written by an incompatible version.

    Operator action: restore the folder from a copy, or build it again from its inputs.
    """


class WorkloadError(NearcastError):
    """A generator or loader cannot produce what was requested."""


class PlanError(NearcastError):
    """A bench plan is unknown or not well formed."""


class PipelineError(NearcastError):
    """A setting of the pipeline is unknown or not usable, or a step lacks what an earlier one writes."""


class TopicError(NearcastError):
    """A topic has an unusable name, cannot be reached, or has lost the records to read next."""


class EnvironmentProblem(NearcastError):  # noqa: N818  # EnvironmentError is a built-in name
    """Something the machine must provide is missing (Java, an optional package).

    Operator action: install what the message names.
    """
