"""Hash tables of words and numbers against a Python dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nearcast.columns.arrow import word_column
from nearcast.columns.id_tables import NumberTable, WordTable
from nearcast.kernels.word_table import ABSENT, ABSENT_NOT_ASCII, same_long_word

# Lengths around the borders of the inline keys (7, 15 bytes), letters that differ only in case, bytes beyond ASCII.
words = st.lists(st.text(alphabet="aAbBzZ[@é日", max_size=20), max_size=60)


def ascii_lower(word: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in word)


@given(words, words, st.booleans())
def test_words_get_ids_in_order_of_arrival(first: list[str], second: list[str], fold: bool) -> None:
    table = WordTable(fold)
    known: dict[str, int] = {}
    for batch in (first, second):
        expected = [known.setdefault(ascii_lower(word) if fold else word, len(known)) for word in batch]
        assert table.add(pa.array(batch, pa.string())).tolist() == expected
    assert table.values().to_pylist() == list(known)
    assert [table.value(i) for i in range(table.n)] == list(known)


@given(words, words, st.booleans())
def test_unknown_words_are_absent_and_marked_when_not_ascii(known: list[str], wanted: list[str], fold: bool) -> None:
    table = WordTable(fold)
    table.add(pa.array(known, pa.string()))
    ids = {(ascii_lower(word) if fold else word): i for i, word in enumerate(table.values().to_pylist())}
    expected = [ids.get(ascii_lower(word) if fold else word, ABSENT if word.isascii() else ABSENT_NOT_ASCII) for word in wanted]
    assert table.find(pa.array(wanted, pa.string())).tolist() == expected


def test_long_words_with_one_byte_changed_are_different() -> None:
    table = WordTable(fold=True)
    base = "x" * 24
    variants = [base[:i] + "y" + base[i + 1 :] for i in range(24)] + [base, base + "x", base[:-1]]
    assert table.add(pa.array(variants)).tolist() == list(range(27))
    assert table.find(pa.array([v.upper() for v in variants])).tolist() == list(range(27))


def test_slices_chunks_and_large_strings_read_alike() -> None:
    table = WordTable(fold=True)
    column = pa.array(["skip", "one", "two", "one", None])
    assert table.add(column.slice(1, 3)).tolist() == [0, 1, 0]
    assert table.find(column.cast(pa.large_string()).slice(1, 3)).tolist() == [0, 1, 0]
    assert table.find(pa.array(["two"], pa.string_view())).tolist() == [1]
    assert table.find(pa.array([], pa.string())).tolist() == []
    assert table.find(pa.array(["one"], pa.string()).slice(1)).tolist() == []


def test_an_empty_column_may_come_without_offsets() -> None:
    nothing = pa.py_buffer(b"")
    assert WordTable(fold=True).find(pa.StringArray.from_buffers(0, nothing, nothing)).tolist() == []


def test_words_whose_hashes_collide_are_told_apart_by_their_bytes() -> None:
    table = WordTable(fold=True)
    table.add(pa.array(["x" * 20]))
    for word, is_same in (("X" * 20, True), ("x" * 19 + "y", False), ("y" + "x" * 19, False), ("x" * 21, False)):
        column = word_column(pa.array([word]))
        arrays = table._arrays
        assert bool(same_long_word(arrays.word_start, arrays.word_bytes, 0, column.data, 0, len(word), True)) is is_same


def test_thousands_of_words_survive_growth_and_reopening() -> None:
    table = WordTable(fold=True)
    names = [f"word-{i}-{'tail' * (i % 5)}" for i in range(3000)]
    assert table.add(pa.array(names)).tolist() == list(range(3000))
    again = WordTable.from_arrays({name: array.copy() for name, array in table.arrays().items()}, fold=True)
    assert again.find(pa.array(names)).tolist() == list(range(3000))
    assert again.add(pa.array(["word-2999-" + "tail" * 4, "new"])).tolist() == [2999, 3000]
    assert again.n_bytes > 0


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200))
def test_numbers_get_ids_in_order_of_arrival(numbers: list[int]) -> None:
    table = NumberTable()
    column = np.array(numbers, np.int64)
    known = {number: i for i, number in enumerate(dict.fromkeys(numbers))}
    assert table.add(column).tolist() == [known[number] for number in numbers]
    assert table.find(column).tolist() == [known[number] for number in numbers]
    assert table.values().tolist() == list(known)
    assert [table.value(i) for i in range(table.n)] == list(known)


def test_numbers_survive_reopening() -> None:
    table = NumberTable()
    table.add(np.arange(0, 3000, 3))
    again = NumberTable.from_arrays({name: array.copy() for name, array in table.arrays().items()})
    assert again.find(np.array([3, 4, 2997])).tolist() == [1, ABSENT, 999]
    assert again.add(np.array([4])).tolist() == [1000]
    assert again.n_bytes > 0
