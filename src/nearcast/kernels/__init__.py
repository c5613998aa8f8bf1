"""Small compiled loops over flat arrays, shared by the indexes.

A kernel is an ordinary Python function under `@kernel` (`compile.py`). It trusts its input: types, order and bounds are checked
at the border by whoever owns the arrays. Structures travel as a NamedTuple of arrays, described field by field where the
tuple is defined. With `NUMBA_DISABLE_JIT=1` every kernel runs as plain Python and can be stepped through.
"""
