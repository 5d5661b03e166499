"""Generate Python from protos/ into sdk/playhall/api.

A proto's package is its directory and its Python package (`playhall.api.router.v1`), so the imports in
generated code are right as protoc writes them. Files that no proto stands behind any more are removed.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
API = Path("playhall/api")


class ProtocError(Exception):
    """protoc refused a file; it has said why on stderr."""


def sources(protos: Path) -> list[str]:
    """Return every proto of the API under `protos`, as protoc wants them named."""
    return sorted(path.relative_to(protos).as_posix() for path in (protos / API).rglob("*.proto"))


def run_protoc(protos: Path, *options: str) -> None:
    """Run protoc over the API, with Google's well-known and common protos within reach."""
    includes = (protos, files("grpc_tools") / "_proto", sysconfig.get_path("purelib"))
    if protoc.main(["protoc", *(f"-I{path}" for path in includes), *options, *sources(protos)]):
        raise ProtocError(f"protoc failed on {protos}")


def generate(protos: Path) -> dict[Path, bytes]:
    """Return the generated files by their path under the source root (`playhall/api/...`)."""
    scripts = Path(sysconfig.get_path("scripts"))
    with tempfile.TemporaryDirectory() as folder:
        run_protoc(
            protos,
            f"--plugin=protoc-gen-mypy={scripts / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={scripts / 'protoc-gen-mypy_grpc'}",
            *(f"--{plugin}_out={folder}" for plugin in ("python", "grpc_python")),
            *(f"--{plugin}_out=quiet:{folder}" for plugin in ("mypy", "mypy_grpc")),
        )
        out = Path(folder)
        made = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return made | packages(made)


def packages(modules: Iterable[Path]) -> dict[Path, bytes]:
    """Return an `__init__.py` for every package between `playhall.api` and the modules."""
    folders = {folder for path in modules for folder in path.parents if folder.is_relative_to(API)} | {API}
    return {
        folder / "__init__.py": f'"""Generated from protos/{folder.as_posix()}; see there."""\n'.encode()
        for folder in folders
    }


def write(made: dict[Path, bytes], root: Path) -> None:
    """Make the API under `root` be exactly `made`."""
    for path, text in made.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
    for stale in {path for path in (root / API).rglob("*.py*") if path.suffix in (".py", ".pyi")}:
        if stale.relative_to(root) not in made:
            stale.unlink()


def main() -> int:
    """Generate."""
    if sources(PROTOS):
        write(generate(PROTOS), ROOT / "sdk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
