"""doctor, indexes, warm, generate: what there is on the machine and in the package."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast import machine
from nearcast.cli.main import app
from nearcast.cli.options import read_location, read_settings
from nearcast.engine import registry
from nearcast.errors import EnvironmentProblem, NearcastError
from nearcast.pipeline import java


def run(*arguments: str, expected: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == expected, result.output
    return result.output


# --- doctor ------------------------------------------------------------------------------------------------------


def test_doctor_shows_versions_machine_and_kernel_cache() -> None:
    output = run("doctor")
    for part in ("python", "numpy", "numba", "llvmlite", "pyarrow", "shapely", "java", "memory", "compiled kernels"):
        assert part in output
    assert machine.cpu_model() in output
    assert "everything required is installed" in output


def test_doctor_fails_if_a_required_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real_version_of = machine.version_of
    monkeypatch.setattr(machine, "version_of", lambda name: None if name in ("numba", "llvmlite") else real_version_of(name))
    output = run("doctor", expected=1)
    assert "missing: numba: required; pip install numba" in output


def test_doctor_does_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> java.Java:
        raise EnvironmentProblem("no Java here")

    monkeypatch.setattr(java, "find_java", nowhere)
    assert "optional: no Java here" in run("doctor")


def test_doctor_shows_settings_of_the_environment_and_refuses_bad_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_MAX_KEYWORD_BYTES", "64")
    output = run("doctor")
    assert "NEARCAST_MAX_KEYWORD_BYTES" in output
    assert "instead of 256" in output
    monkeypatch.setenv("NEARCAST_MAX_KEYWORD_BYTES", "many")
    assert "is not a whole number" in run("doctor", expected=1)


def test_doctor_warns_of_interpreted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert "slows everything down" in run("doctor")


# --- indexes, warm -----------------------------------------------------------------------------------------------


def test_indexes_lists_every_registered_index_with_its_parameters() -> None:
    output = run("indexes")
    for name in registry.indexes("boolean"):
        assert name in output
    assert "node_capacity = 50" in output
    assert run("indexes", "--kind", "boolean").count("boolean") == len(registry.indexes("boolean"))


def test_a_kind_without_indexes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "indexes", lambda kind: {})
    assert "no ranked index" in run("indexes", "--kind", "ranked")


def test_warm_goes_through_every_index_and_says_where_kernels_are_kept() -> None:
    output = run("warm")
    assert f"{sum(len(registry.indexes(kind)) for kind in registry.KINDS)} indexes ready" in output
    assert str(machine.cached_kernels().folder) in output


# --- generate ----------------------------------------------------------------------------------------------------

SMALL = ("--set", "vocabulary_size=500", "--set", "frequencies=curve", "--set", "n_keywords=[1, 2]")


def test_generate_writes_parquet_files_and_says_what_they_are(tmp_path: Path) -> None:
    output = run("generate", "tweets", "--messages", "30", "--subscriptions", "20", "--out", str(tmp_path / "new"), *SMALL)
    assert "20 subscriptions and 30 messages of 'tweets' (plane)" in output
    messages = pq.read_table(tmp_path / "new" / "messages.parquet")
    subscriptions = pq.read_table(tmp_path / "new" / "subscriptions.parquet")
    assert (messages.num_rows, subscriptions.num_rows) == (30, 20)
    assert messages.schema.field("keywords").type.value_type == pa.string()
    assert max(len(words) for words in subscriptions["keywords"].to_pylist()) <= 2
    facts = json.loads((tmp_path / "new" / "README.md").read_text().split(": ", 1)[1])
    assert (facts["vocabulary_size"], facts["words"]) == (500, True)


def test_generate_can_keep_keyword_ids_and_repeats_itself(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("generate", "tweets", "--messages", "5", "--subscriptions", "0", "--ids", "--out", str(tmp_path / name), *SMALL)
    first, second = (pq.read_table(tmp_path / name / "messages.parquet") for name in ("a", "b"))
    assert first.equals(second)
    assert first.schema.field("keywords").type.value_type == pa.int32()


def test_generate_lists_workloads() -> None:
    output = run("generate", "--list")
    assert "tweets" in output
    assert "(required)" in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("toots",), "there is no workload 'toots'"),
        (("tweets", "--set", "colour=red"), "tweets does not take colour"),
        (("tweets", "--set", "colour"), "is not key=value"),
        (("tweets", "--set", "range=round"), "range"),
    ],
)
def test_generate_refuses_what_it_does_not_know(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in run("generate", *arguments, "--out", str(tmp_path / "x"), "--messages", "3", expected=2)


def test_generate_refuses_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is a file; expected a folder" in run("generate", "tweets", "--out", str(tmp_path / "file"), *SMALL, expected=2)


# --- parameters --------------------------------------------------------------------------------------------------


def test_settings_are_json_or_text() -> None:
    pairs = ("a=3", "b=0.5", "c=true", "d=[1, 3]", "e=side", "f=x=y")
    assert read_settings(pairs) == {"a": 3, "b": 0.5, "c": True, "d": (1, 3), "e": "side", "f": "x=y"}


def test_a_place_is_two_or_four_numbers() -> None:
    assert read_location("-74.5,40") == (-74.5, 40.0)
    assert read_location("0,0,1,2") == (0.0, 0.0, 1.0, 2.0)
    for wrong in ("1", "1,2,3", "a,b", ""):
        with pytest.raises(NearcastError, match="is not a location"):
            read_location(wrong)
