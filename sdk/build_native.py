"""Builds the native engine, and sockets: every `.pyx` of playhall, by Cython and a C compiler.

    python build_native.py            in place, as an editable install needs it
    python build_native.py FOLDER     into a folder, leaving what is in place as it is

The C files and objects stay in build/native, or in the folder, so that only what changed is built again. More
flags for the compiler and linker come in PLAYHALL_NATIVE_CFLAGS (the sanitizer build uses that).
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
NATIVE = Path("playhall/engine/native")
SOCKETS = Path("playhall/sockets")
_DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}
# gcc vectorises from -O3 on only (12.x), and column scans live on that; and what compares numbers only where
# nobody asks whether one was invalid. Products and sums that are fused where the processor can would be other
# numbers than the pure engine's.
_CFLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
_CFLAGS += ["-g0", "-Wno-unused-function", "-Wno-unreachable-code"]


def build(target: Path | None = None) -> list[Path]:
    """Build all modules, into the source tree or into `target`. Returns their files. Raises what setuptools
    raises where there is no compiler.
    """
    made_in = "build/native" if target is None else str(target.absolute() / "build")
    os.chdir(HERE)
    # epoll is Linux's.
    sources = [*NATIVE.glob("*.pyx"), *(SOCKETS.glob("*.pyx") if sys.platform == "linux" else ())]
    extra = shlex.split(os.environ.get("PLAYHALL_NATIVE_CFLAGS", ""))
    extensions = [
        Extension(
            ".".join(source.with_suffix("").parts),
            [str(source)],
            extra_compile_args=[*_CFLAGS, *extra],
            extra_link_args=extra,
            depends=[str(path) for path in sorted(NATIVE.glob("*.p[xy]d")) + sorted(NATIVE.glob("*.h"))],
        )
        for source in sorted(sources)
    ]
    made = cythonize(
        extensions, build_dir=made_in, compiler_directives=_DIRECTIVES, nthreads=os.cpu_count() or 1
    )
    command = build_ext(Distribution({"name": "playhall", "ext_modules": made}))
    command.inplace = target is None
    command.build_temp = made_in
    command.parallel = os.cpu_count() or 1
    if target is not None:
        command.build_lib = str(target.absolute())
    command.ensure_finalized()
    command.run()
    return [Path(path) for path in command.get_outputs()]


if __name__ == "__main__":
    print("Building the native engine (once, half a minute or so)", file=sys.stderr)
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
