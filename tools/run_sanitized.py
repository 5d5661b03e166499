"""Run tests with the native engine under AddressSanitizer and UBSan: `make test-sanitized`.

    python -m tools.run_sanitized [ARGUMENTS OF PYTEST, with tests of its own or without]

Builds the native modules into .venv/sanitized, beside those that everything else runs on, and runs pytest on
them: what uses native code, and the fuzz corpora. The first bad access or undefined step ends the run with a
report.

Python itself is not built for it, so its memory comes from malloc here, for each object to have borders of
its own; and leaks are not looked for, as the interpreter never frees all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / ".venv" / "sanitized"
SANITIZERS = ("address", "undefined", "float-cast-overflow")
CFLAGS = (
    *("-O1", "-g1", "-fno-omit-frame-pointer"),
    *(f"-fsanitize={','.join(SANITIZERS)}", "-fno-sanitize-recover=all"),
)
TESTS = (
    "tests/unit/engine",
    "tests/unit/fieldlog",
    "tests/unit/testing",
    "tests/unit/client",
    "tests/unit/router",
    "tests/protocol",
    "tests/services/test_sockets.py",
)


def build(target: Path) -> None:
    """Build the native modules with sanitizers. Raises CalledProcessError where that fails."""
    env = {**os.environ, "PLAYHALL_NATIVE_CFLAGS": " ".join(CFLAGS)}
    subprocess.run([sys.executable, str(ROOT / "sdk" / "build_native.py"), str(target)], env=env, check=True)


def runtime() -> str:
    """Return the file of the sanitizer's runtime. Raises CalledProcessError, or FileNotFoundError."""
    compiler = os.environ.get("CC", "gcc")
    found = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        raise FileNotFoundError(f"{compiler} has no libasan.so; on Debian and Ubuntu: apt-get install gcc")
    return str(Path(found).resolve())


def environment(runtime: str, built: Path) -> Mapping[str, str]:
    """Return what a process needs around it to run on sanitized modules."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PLAYHALL_PURE"},
        "LD_PRELOAD": runtime,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PLAYHALL_SANITIZED": str(built),
    }


def tests_of(arguments: Sequence[str]) -> Sequence[str]:
    """Return the tests to run beside those that the arguments name: all, if they name none."""
    named = any((ROOT / each.split("::")[0]).exists() for each in arguments if not each.startswith("-"))
    return () if named else TESTS


def main(arguments: Sequence[str]) -> int:
    """Return pytest's exit status; a report of a sanitizer is on stderr."""
    build(BUILT)
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.support.sanitized", "--capture=sys"]
    pytest += ["-o", "timeout=600"]  # all is several times slower
    env = environment(runtime(), BUILT)
    return subprocess.run([*pytest, *tests_of(arguments), *arguments], cwd=ROOT, env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
