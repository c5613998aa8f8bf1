"""The sizing model: fits what it was made from, refuses negative parts, and finds the fewest machines."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast.cli.main import app
from nearcast.errors import NearcastError
from nearcast.sizing.calibration import CellLoad, calibrate, read_calibration, write_calibration
from nearcast.sizing.model import (
    BUSY_SHARE,
    COPIES_DURING_MERGE,
    MEMORY_SHARE,
    Cell,
    Demand,
    SizingModel,
    deployment_for,
    fit_model,
)

MODEL = SizingModel((0.5, 0.01, 0.05), (1e6, 200.0), 0.8)


def test_a_fit_gives_back_what_made_the_cells() -> None:
    cells = [
        Cell(n, matches, MODEL.us_per_message(n, matches), int(MODEL.n_bytes(n)))
        for n, matches in ((1_000, 1), (10_000, 50), (500_000, 3), (500_000, 90))
    ]
    fitted = fit_model(cells, 0.8)
    assert fitted.time == pytest.approx(MODEL.time, rel=1e-6)
    assert fitted.space == pytest.approx(MODEL.space, rel=1e-3)


def test_no_part_of_the_work_is_negative() -> None:
    # The more matches the faster: nonsense that a plain fit would believe.
    fitted = fit_model([Cell(1_000, 1, 9.0, 100), Cell(1_000, 50, 8.0, 100), Cell(2_000, 90, 7.0, 90)], 1.0)
    assert min(*fitted.time, *fitted.space) >= 0


@pytest.mark.parametrize(("n", "rate"), [*product((1_000, 5_000_000, 2_000_000_000), (10, 1_000_000, 50_000_000))])
def test_machines_hold_and_bear_what_is_asked_and_one_less_would_not(n: int, rate: float) -> None:
    demand = Demand(n, rate, 20.0, 8, 16e9, 300, 16)
    deployment = deployment_for(demand, MODEL)
    assert deployment is not None
    assert COPIES_DURING_MERGE * deployment.bytes_per_shard <= MEMORY_SHARE * demand.memory_bytes
    assert rate / deployment.replicas <= BUSY_SHARE * deployment.messages_per_second * (1 + 1e-9)
    if deployment.replicas > 1:
        assert rate / (deployment.replicas - 1) > BUSY_SHARE * deployment.messages_per_second


def test_more_is_never_fewer_machines_and_too_little_memory_is_told() -> None:
    needed = [deployment_for(Demand(1_000_000, rate, 5, 4, 8e9, 300, 16), MODEL) for rate in (1e3, 1e6, 1e7, 1e8)]
    machines = [one.machines for one in needed if one is not None]
    assert machines == sorted(machines)
    assert machines[0] == 1
    assert deployment_for(Demand(1_000_000, 1, 5, 4, 1e5, 300, 16), MODEL) is None


def test_a_calibration_is_measured_kept_and_read_again(tmp_path: Path) -> None:
    calibrated = calibrate([CellLoad(500, 5.0, 200), CellLoad(2_000, 50.0, 200)])
    assert all(cell.us_per_message > 0 and cell.n_bytes > 0 for cell in calibrated.cells)
    assert calibrated.cells[1].matches > calibrated.cells[0].matches
    write_calibration(tmp_path / "stored.json", calibrated)
    assert read_calibration(tmp_path / "stored.json") == calibrated
    assert read_calibration(tmp_path / "none.json") is None
    (tmp_path / "stored.json").write_text("{}")
    with pytest.raises(NearcastError, match="--calibrate"):
        read_calibration(tmp_path / "stored.json")


def test_the_command_tells_machines_memory_and_network(tmp_path: Path) -> None:
    write_calibration(tmp_path / "stored.json", calibrate([CellLoad(500, 5.0, 200), CellLoad(2_000, 50.0, 200)]))
    load = ["--subscriptions", "20000000", "--rate", "50000", "--matches", "30", "--calibration", str(tmp_path / "stored.json")]
    output = CliRunner().invoke(app, ["size", *load]).output
    assert "machines" in output
    assert "1,500,000 deliveries/s" in output
    assert "15.00 MB/s" in output or "replicas" in output
    refused = CliRunner().invoke(app, ["size", *load, "--memory-gb", "0.1", "--subscriptions", "900000000000"])
    assert refused.exit_code == 2
