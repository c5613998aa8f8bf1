"""Closed boxes: touching counts."""

from __future__ import annotations

from nearcast.kernels.compile import inline_kernel


@inline_kernel
def meets(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """Whether two closed boxes have a point in common."""
    return ax0 <= bx1 and bx0 <= ax1 and ay0 <= by1 and by0 <= ay1
