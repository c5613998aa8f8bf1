"""Requests made from the OpenAPI document: none breaks the server, and no answer is one the document does not know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.testing.budget import Budget
from support.http_server import SmallServer

pytestmark = pytest.mark.xdist_group("service")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_requests_made_from_the_document_break_nothing(shared_server: SmallServer, budget: Budget, tmp_path: Path) -> None:
    n_examples, mode = ("100", "all") if budget.is_soak else ("1", "positive")
    # Streams do not end, and requests of the test itself must not take its own key away.
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{shared_server.url}/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {shared_server.key}", "--checks", CHECKS),
        *("--exclude-path-regex", "/v1/live|/v1/events|/v1/console", "--max-examples", n_examples, "--mode", mode),
        *("--phases", "fuzzing", "--generation-deterministic", "--request-timeout", "120", "--no-color"),
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    # Addresses of webhooks that lead nowhere are no failure of ours; everything else it prints is.
    assert told.returncode == 0, told.stdout
