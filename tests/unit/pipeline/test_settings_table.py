"""The table of pipeline settings: file, hand, refusals, documentation."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from nearcast.errors import PipelineError
from nearcast.pipeline.settings import PipelineSettings, read_pipeline_settings

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "pipeline.md"


def test_what_is_given_by_hand_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text('shards = 3\nwork = "here"\nspark = { "spark.executor.memory" = "2g" }\n')
    settings = read_pipeline_settings(file, {"shards": 5})
    assert (settings.shards, settings.work, settings.spark) == (5, "here", {"spark.executor.memory": "2g"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shard": 3}, "no pipeline setting 'shard'"),
        ({"shards": "3"}, "is of type str; expected int"),
        ({"shards": 0}, "at least 1"),
        ({"mechanism": "magic"}, "is unknown; give one of auto, hashing"),
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        read_pipeline_settings(None, values)


def test_a_file_that_is_not_toml_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("shards = = 3")
    with pytest.raises(PipelineError, match="cannot be read"):
        read_pipeline_settings(tmp_path / "bad.toml", {})


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    lines = PAGE.read_text().splitlines()
    for setting in fields(PipelineSettings):
        default = {} if setting.default is MISSING else setting.default
        assert f"| `{setting.name}` | `{default!r}` | {setting.metadata['help']} |" in lines


def test_a_verb_has_defaults_of_its_own_and_whole_numbers_are_numbers() -> None:
    settings = read_pipeline_settings(None, {"max_distance": 10}, {"stream": "rank", "shards": 3})
    assert (settings.stream, settings.shards, settings.max_distance) == ("rank", 3, 10.0)
    assert read_pipeline_settings(None, {"shards": 2}, {"shards": 3}).shards == 2
