"""`make new-index NAME=name`: a boolean index to begin with, as a copy of `scan`, registered under its name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "nearcast"
NEXT = """{index}: the class. Implement build, insert, delete, match, explain, arrays and restore.
{kernels}: the compiled loops; they see NumPy arrays only.
Registered in src/nearcast/boolean/indexes.py, so the conformance tests run it:
  make test-unit T="tests/conformance/test_boolean_indexes.py -k {name}"
Before it is done: docs/explanation/{name}.md, a row in docs/glossary.md, a line in CHANGELOG.md.
"""


def main(name: str) -> int:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        sys.stderr.write(
            f"NAME={name!r} is not usable; expected small letters, digits and underscores: make new-index NAME=my_index\n"
        )
        return 2
    folder, names = SOURCE / "boolean" / name, SOURCE / "boolean" / "indexes.py"
    registry = names.read_text(encoding="utf-8")
    if folder.exists() or f'"{name}"' in registry:
        sys.stderr.write(f"there is an index or a folder {name!r} already; choose another name\n")
        return 2
    cls = "".join(part.capitalize() for part in name.split("_"))
    folder.mkdir()
    (folder / "__init__.py").write_text(f'"""The index `{name}`."""\n', encoding="utf-8")
    (folder / "kernels.py").write_text((SOURCE / "kernels" / "scan.py").read_text(encoding="utf-8"), encoding="utf-8")
    index = (SOURCE / "boolean" / "scan.py").read_text(encoding="utf-8")
    index = index.replace("nearcast.kernels.scan", f"nearcast.boolean.{name}.kernels").replace("class Scan", f"class {cls}")
    index = index.replace('"scan"', f'"{name}"').replace("`scan`", f"`{name}`").replace('f"scan: ', f'f"{name}: ')
    # Imports in order: the own kernels come before those of other packages.
    lines = index.split("\n")
    own = next(line for line in lines if line.startswith(f"from nearcast.boolean.{name}.kernels"))
    lines.remove(own)
    lines.insert(next(i for i, line in enumerate(lines) if line.startswith("from nearcast.")) + 1, own)
    (folder / "index.py").write_text("\n".join(lines), encoding="utf-8")
    first = '        "scan": "nearcast.boolean.scan:Scan",\n'
    names.write_text(
        registry.replace(first, f'{first}        "{name}": "nearcast.boolean.{name}.index:{cls}",\n'), encoding="utf-8"
    )
    here = folder.relative_to(ROOT)
    sys.stdout.write(NEXT.format(index=here / "index.py", kernels=here / "kernels.py", name=name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
