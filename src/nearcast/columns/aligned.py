"""Arrays that begin with a line of memory, so that what is laid out in lines does not lie across two of them.

NumPy's own begin sixteen bytes behind one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE_BYTES = 64


def aligned_empty(n: int, dtype: Any) -> NDArray[Any]:
    """An array of `n` elements; its pages are not touched."""
    size = np.dtype(dtype).itemsize
    return _from_line(np.empty(n + LINE_BYTES // size, dtype))[:n]


def aligned_zeros(n: int, dtype: Any) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    return _from_line(np.zeros(n + LINE_BYTES // size, dtype))[:n]


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    copied = aligned_empty(array.size, array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _from_line(whole: NDArray[Any]) -> NDArray[Any]:
    return whole[-whole.ctypes.data % LINE_BYTES // whole.itemsize :]
