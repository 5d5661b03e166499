"""The commands of `playhall`. Each imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    name="playhall", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip


class ServiceName(StrEnum):
    """What `playhall serve` can run."""

    ROUTER = "router"
    ROOMHOST = "roomhost"
    STATESTORE = "statestore"
    DATA = "data"
    VOICE = "voice"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"playhall {importlib.metadata.version('playhall')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Multiplayer rooms in Python."""


@app.command()
def dev(
    path: Annotated[Path, typer.Argument(help="The game's folder, or its playhall.toml.")] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of the site; 0 takes a free one.")
    ] = 7350,
    routers: Annotated[
        int, typer.Option(min=1, max=8, help="Router processes; two show what clients do when one ends.")
    ] = 1,
) -> None:
    """Run everything on this machine and serve the game; a saved file becomes a new build."""
    from playhall.cli.dev import run

    raise typer.Exit(run(path, host=host, port=port, routers=routers))


@app.command()
def serve(service: Annotated[ServiceName, typer.Argument(help="Which service.")]) -> None:
    """Run one service, configured by PLAYHALL_<SERVICE>_* environment variables."""
    module = f"playhall_{service.value}"
    if importlib.util.find_spec(module) is None:
        from playhall.cli.errors import HOW_TO_INSTALL

        typer.echo(f"playhall: {module} is not installed. {HOW_TO_INSTALL}", err=True)
        raise typer.Exit(1)
    # -P: what lies in the working directory is not importable. The service takes this process over, so that
    # signals reach it.
    os.execv(sys.executable, [sys.executable, "-P", "-m", module])


@app.command()
def gen(
    module: Annotated[Path, typer.Argument(help="The Python module that declares the schema: shared.py.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The TypeScript file to write: shared.gen.ts.")],
    check: Annotated[bool, typer.Option(help="Write nothing; fail if the file is not up to date.")] = False,
) -> None:
    """Write the TypeScript schema module of a Python one, for the page."""
    from playhall.cli.gen import GenError, generate, write

    try:
        if not check:
            write(module, out)
            # The same whether it was written: `playhall dev` tells a problem once that a build has twice.
            typer.echo(f"{out} is up to date")
        elif not out.exists() or out.read_text(encoding="utf-8") != generate(module):
            typer.echo(f"{out} is not up to date. Run: playhall gen {module} -o {out}", err=True)
            raise typer.Exit(1)
    except (GenError, OSError) as error:
        typer.echo(f"playhall: {error}", err=True)
        raise typer.Exit(1) from None
