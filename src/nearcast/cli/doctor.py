"""`nearcast doctor`: check the machine and the installation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import typer

from nearcast.cli.console import results, table_of
from nearcast.errors import EnvironmentProblem, NearcastError

if TYPE_CHECKING:
    from nearcast.settings import Setting

_VECTORS = ("avx2", "avx512f")
_OPTIONAL = {
    "pyspark": "the pipeline; pip install 'nearcast[spark]'",
    "litestar": "the service; pip install 'nearcast[service]'",
    "matplotlib": "plots of the bench; pip install 'nearcast[bench]'",
    "wordfreq": "real word frequencies in workloads; pip install 'nearcast[bench]'",
    "PyStemmer": "stemming; pip install 'nearcast[stemming]'",
}


class Finding(NamedTuple):
    """One line of the table. A problem makes the command fail."""

    subject: str
    value: str
    remark: str = ""
    is_problem: bool = False


def doctor() -> None:
    """Check the installation: versions, Java, processor, compiled kernels, settings. Exit code 1 if something is missing."""
    from rich.text import Text

    findings = [*_packages(), *_java(), *_machine(), *_kernels(), *_settings()]
    console = results()
    console.print(table_of(("", "found", "remark"), [finding[:3] for finding in findings]))
    problems = [finding for finding in findings if finding.is_problem]
    for problem in problems:
        console.print(Text(f"missing: {problem.subject}: {problem.remark or problem.value}", style="red"))
    if problems:
        raise typer.Exit(1)
    console.print("everything required is installed", style="green")


def _packages() -> Iterator[Finding]:
    from nearcast.machine import version_of, versions

    for package, version in versions().items():
        if version is None and package != "nearcast":
            yield Finding(package, "-", f"required; pip install {package}", True)
        else:
            yield Finding(package, version or "not installed as a package")
    for package, remark in _OPTIONAL.items():
        version = version_of(package)
        yield Finding(package, version or "-", "" if version else f"optional: {remark}")


def _java() -> Iterator[Finding]:
    from nearcast.pipeline.java import find_java

    try:
        java = find_java()
    except EnvironmentProblem as problem:
        yield Finding("java", "-", f"optional: {problem}")
    else:
        yield Finding("java", str(java.version), f"{java.home} ({java.source})")


def _machine() -> Iterator[Finding]:
    from nearcast import machine

    memory = machine.memory_bytes()
    yield Finding("processor", machine.cpu_model())
    yield Finding("cores", str(machine.usable_cores()))
    yield Finding("memory", "unknown" if memory is None else f"{memory / 2**30:.1f} GiB")
    if machine.version_of("llvmlite") is not None:
        from llvmlite import binding

        features = binding.get_host_cpu_features()
        vectors = [name for name in _VECTORS if features.get(name)]
        yield Finding("vector units", ", ".join(vectors) or "-", "" if vectors else "matching works, at scalar speed")
    if machine.version_of("numba") is not None:
        from nearcast.kernels import simd

        yield Finding("vector level", simd.LEVEL, "used by frequency_grid; NUMBA_CPU_FEATURES may lower it")


def _kernels() -> Iterator[Finding]:
    from nearcast import machine

    if machine.version_of("numba") is None:
        return
    cached = machine.cached_kernels()
    remark = "" if cached.n_kernels else "nearcast warm compiles them in advance"
    yield Finding("compiled kernels", f"{cached.n_kernels} in {cached.n_bytes / 2**20:.1f} MiB", remark)
    yield Finding("kernel cache", str(cached.folder))


def _settings() -> Iterator[Finding]:
    import os

    from nearcast.settings import SETTINGS

    for setting in SETTINGS:
        if setting.variable in os.environ:
            yield _override_finding(setting)
    for variable in ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"):
        if os.environ.get(variable, "0") not in ("", "0"):
            yield Finding(variable, os.environ[variable], "slows everything down; meant for tests")


def _override_finding(setting: Setting) -> Finding:
    try:
        return Finding(setting.variable, str(setting.value), f"instead of {setting.default!r}: {setting.help}")
    except NearcastError as error:
        return Finding(setting.variable, "-", str(error), True)
