"""Vocabulary: one normal form whatever the spelling, ids that never change, frequencies and orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearcast as nc
from nearcast.columns.vocabulary import KeywordNumbers, Vocabulary
from nearcast.errors import KeywordError, NearcastError
from nearcast.model.normalise import normalise

# Spellings that fold onto each other: case, compatibility forms, combining marks, sharp s, Turkish and Kelvin signs.
spelling = st.text(alphabet="aAéÉe\u0301ﬁＡßẞsſİıK\u212aΣσς", min_size=1, max_size=8)


@given(st.lists(spelling, max_size=30), st.lists(spelling, max_size=30))
def test_columns_are_encoded_like_single_words_are_normalised(known: list[str], wanted: list[str]) -> None:
    vocabulary = Vocabulary(known)
    ids = {word: i for i, word in enumerate(vocabulary.words().to_pylist())}
    assert set(ids) == {normalise(word) for word in known}
    encoded = vocabulary.encode(pa.array(wanted, pa.string()), grow=False)
    assert encoded.ids.tolist() == [ids.get(normalise(word), -1) for word in wanted]
    grown = vocabulary.encode(pa.array(wanted, pa.string()), grow=True).ids
    assert [vocabulary.name(int(i)) for i in grown] == [normalise(word) for word in wanted]


def test_unusable_words_are_named_and_the_rest_encoded() -> None:
    vocabulary = Vocabulary()
    encoded = vocabulary.encode(pa.array(["rain", "", None, "x" * 300, "é" * 200, "snow"]), grow=True)
    assert sorted(encoded.problems) == [1, 2, 3, 4]
    assert "empty" in encoded.problems[1]
    assert "null" in encoded.problems[2]
    assert "longer than 256 bytes" in encoded.problems[3]
    assert "longer than 256 bytes" in encoded.problems[4]
    assert vocabulary.words().to_pylist() == ["rain", "snow"]


def test_a_vocabulary_refuses_an_unusable_word() -> None:
    with pytest.raises(KeywordError, match="word 1 of the vocabulary"):
        Vocabulary(["rain", ""])


def test_stemming_is_part_of_the_normal_form() -> None:
    pytest.importorskip("Stemmer")
    vocabulary = Vocabulary(["house"], analysis=nc.Analysis(stem="english"))
    assert vocabulary.id("Houses") == 0
    encoded = vocabulary.encode(pa.array(["houses", "", "cats", "cat"]), grow=True)
    assert encoded.ids.tolist() == [0, -1, 1, 1]
    assert list(encoded.problems) == [1]
    assert len(vocabulary.encode(pa.array([], pa.string()), grow=True).ids) == 0


def test_orders_follow_document_frequencies() -> None:
    vocabulary = Vocabulary(["b", "a", "c"])
    vocabulary.observe(np.array([0, 0, 2], np.int32))
    assert vocabulary.document_frequency.tolist() == [2, 0, 1]
    assert vocabulary.ranks("frequent_first").tolist() == [0, 2, 1]
    assert vocabulary.ranks("rare_first").tolist() == [2, 0, 1]
    assert vocabulary.ranks("alphabetical").tolist() == [1, 0, 2]
    with pytest.raises(NearcastError, match="no order 'random'"):
        vocabulary.ranks("random")  # type: ignore[arg-type]


def test_a_saved_vocabulary_opens_and_grows(tmp_path: Path) -> None:
    vocabulary = Vocabulary(["rain", "Straße"])
    vocabulary.observe(np.array([1], np.int32))
    vocabulary.save(tmp_path / "words")
    again = Vocabulary.open(tmp_path / "words")
    assert {again.id("RAIN"), again.id("strasse")} == {0, 1}
    assert ("hail" in again, len(again)) == (False, 2)
    assert again.document_frequency.tolist() == [0, 1]
    assert again.encode(pa.array(["hail", "rain"]), grow=True).ids.tolist() == [2, vocabulary.id("rain")]
    assert again.document_frequency.tolist() == [0, 1, 0]
    assert again.n_bytes > 0


def test_numbers_are_an_id_space_of_their_own() -> None:
    space = KeywordNumbers()
    assert space.encode(pa.array([7, -3, 7], pa.int32()), grow=True).ids.tolist() == [0, 1, 0]
    assert space.encode(pa.array([-3, 8], pa.int16()), grow=False).ids.tolist() == [1, -1]
    assert space.encode(pa.array([7, None], pa.int32()), grow=False).problems == {1: "a keyword is null"}
    assert (space.n, space.name(1)) == (2, "-3")
    assert KeywordNumbers.from_arrays(space.arrays()).encode(pa.array([7], pa.int32()), grow=False).ids.tolist() == [0]
    assert space.n_bytes > 0
