"""Two engines as one: a state machine of Hypothesis that does each step in this process and in a twin's.

The twin is a process with the other engine: the pure one (PLAYHALL_PURE=1) if this one has the native, and
the other way round. It imports the same machine, and is told each step as it was drawn. What comes of a step
must be the same in both, to the byte: the outputs of every room, in order, then what is read (`twin_reads`),
or the error that the step raised.

    TestTables = twins_of(Tables, read_room).TestCase

What is drawn has to pickle, and a machine must do the same given the same: no draws within a rule.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, reduce
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from playhall.engine import backend
from playhall.engine.core import RoomCore
from tests.support.plain import plain

__all__ = ["Reads", "engine", "needs_both_engines", "serve", "twin_engine", "twins_of"]

ROOT = Path(__file__).parents[2]
# A step takes milliseconds, also of a busy machine; the first one imports the tests and NumPy.
ANSWER_S = 60.0

Reads = Callable[[Any], Any]
"""What is read of a machine after each step: a function of a module, so that the twin finds it."""


def engine() -> str:
    """Return which engine this process has: "native" or "pure"."""
    return "native" if backend.native else "pure"


needs_both_engines = pytest.mark.skipif(
    find_spec("playhall.engine.native.tables") is None, reason="the native engine is not built: make native"
)


class Steps:
    """Runs the steps of one machine, and returns what comes of each, with the error that it raised."""

    def __init__(self, machine: type[RuleBasedStateMachine], reads: Reads) -> None:
        self._class: Any = machine
        self._reads = reads
        self._made: Any = None

    def make(self, make: Callable[[], Any]) -> tuple[list[Any], BaseException | None]:
        """Make the machine."""

        def keep() -> None:
            self._made = make()

        return self._run(keep)

    def step(self, name: str, drawn: dict[str, Any]) -> tuple[list[Any], BaseException | None]:
        """Run a rule of the machine, or its teardown."""
        return self._run(lambda: getattr(self._class, name)(self._made, **drawn))

    def _run(self, run: Callable[[], object]) -> tuple[list[Any], BaseException | None]:
        tape: list[Any] = []
        raised: BaseException | None = None
        with _outputs_noted(tape):
            try:
                run()
                tape.append(("reads", plain(self._reads(self._made))))
            except (Exception, pytest.fail.Exception) as error:
                raised = error
                tape.append(("raises", plain(error)))
        return tape, raised


@contextmanager
def _outputs_noted(tape: list[Any]) -> Iterator[None]:
    """Have what is taken out of any room noted."""
    take = RoomCore.take_outputs

    def take_and_note(core: RoomCore) -> list[Any]:
        outputs = take(core)
        tape.extend(plain(output) for output in outputs)
        return outputs

    setattr(RoomCore, "take_outputs", take_and_note)  # noqa: B010 - to checkers, methods are not assigned
    try:
        yield
    finally:
        setattr(RoomCore, "take_outputs", take)  # noqa: B010


class Twin:
    """The process with the other engine. It ends with this one, whose end closes its pipe."""

    def __init__(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        env = {name: value for name, value in os.environ.items() if name != "PLAYHALL_PURE"}
        if engine() == "native":
            env["PLAYHALL_PURE"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.twins", str(theirs.fileno())],
            cwd=ROOT,
            env=env,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.engine: str = self.answer()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, *request: Any) -> None:
        self._pipe.send(request)

    def answer(self) -> Any:
        """Wait for the answer to what was told. A twin that does not answer is ended."""
        try:
            if self._pipe.poll(ANSWER_S):
                return self._pipe.recv()
        except (EOFError, OSError) as error:
            self.end()
            raise AssertionError(f"the twin ended with {self._process.returncode}") from error
        self.end()
        raise AssertionError(f"the twin did not answer within {ANSWER_S:g} s")

    def end(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.wait(10)


@cache
def _twins() -> list[Twin]:
    """The twin of this process, after those before it that ended."""
    found: list[Twin] = []

    def end_all() -> None:
        for twin in found:
            twin.end()

    atexit.register(end_all)
    return found


def _twin() -> Twin:
    found = _twins()
    if not found or not found[-1].alive:
        found.append(Twin())
    return found[-1]


def twin_engine() -> str:
    """Return which engine the twin has."""
    return _twin().engine


class Pair:
    """A machine in this process and its like in the twin."""

    def __init__(self, machine: type[RuleBasedStateMachine], reads: Reads) -> None:
        self._machine, self._reads = machine, reads
        self._steps = Steps(machine, reads)
        self._twin = _twin()
        self.inside = False
        """A step is being done, of which other rules may be a part."""
        self.over = False
        """A step has failed, after which there is nothing to compare."""

    def make(self, make: Callable[[], Any]) -> None:
        self._do(("make", self._machine, self._reads), lambda: self._steps.make(make))

    def step(self, name: str, drawn: dict[str, Any]) -> None:
        self._do(("step", name, drawn), lambda: self._steps.step(name, drawn))

    def _do(
        self, request: tuple[Any, ...], run: Callable[[], tuple[list[Any], BaseException | None]]
    ) -> None:
        self._twin.tell(*request)
        self.inside = self.over = True
        try:
            ours, raised = run()
            theirs = self._twin.answer()
        except BaseException:
            self._twin.end()  # or the next machine would read what is of this one
            raise
        if raised is not None or ours != theirs:
            self._twin.end()  # what the machine has changed of its process stays changed
        if ours != theirs:
            raise AssertionError(_difference(ours, theirs)) from raised
        if raised is not None:
            raise raised
        self.inside = self.over = False


def _difference(ours: list[Any], theirs: list[Any]) -> str:
    pairs = zip(ours, theirs, strict=False)
    at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
    mine, others = (repr(tape[at]) if at < len(tape) else "nothing" for tape in (ours, theirs))
    same = next((n for n, (a, b) in enumerate(zip(mine, others, strict=False)) if a != b), 0)
    shown = slice(max(0, same - 200), same + 800)
    return (
        f"the engines differ in output {at} of {len(ours)} and {len(theirs)}, from character {same} on:\n"
        f"{engine()}: ...{mine[shown]}\nthe twin: ...{others[shown]}"
    )


class Twinned:
    """Mixed into a machine, before it."""

    machine: ClassVar[Any]
    reads: ClassVar[tuple[Reads]]

    def __init__(self) -> None:
        self.pair = Pair(self.machine, *self.reads)

        def make() -> Any:
            self.machine.__init__(self)
            return self

        self.pair.make(make)

    def teardown(self) -> None:
        if not self.pair.over:
            self.pair.step("teardown", {})
            return
        with suppress(Exception):  # after a failure, which is what is told
            self.machine.teardown(self)


def twins_of(machine: type[RuleBasedStateMachine], reads: Reads) -> Any:
    """Return the machine as one that takes each step in both engines, and fails where they differ."""
    found: Any = machine.setup_state()
    members: dict[str, Any] = {"machine": machine, "reads": (reads,), "__module__": __name__}
    for each in found.rules:
        decorators: list[Any] = [rule(**each.arguments), *map(precondition, each.preconditions)]
        members[each.function.__name__] = reduce(lambda step, made: made(step), decorators, _in_both(each))
    for each in found.initializers:
        begin: Any = initialize(**each.arguments)
        members[each.function.__name__] = begin(_in_both(each))
    made: Any = type(f"Twin{machine.__name__}", (Twinned, machine), members)
    # Two processes take turns, and a busy machine lets each wait for its turn.
    made.TestCase.pytestmark = [needs_both_engines, pytest.mark.timeout(600)]
    return made


def _in_both(rule: Any) -> Any:
    function = rule.function

    def step(self: Any, *given: Any, **drawn: Any) -> Any:
        if self.pair.inside:
            return function(self, *given, **drawn)
        self.pair.step(function.__name__, drawn)
        return None

    step.__name__ = function.__name__
    return step


def serve(pipe: Connection) -> None:
    """Be a twin: do what is told, until the other end is gone."""
    sys.setrecursionlimit(10_000)  # Hypothesis raises that of the other end, and deep JSON is read here too
    pipe.send(engine())
    steps: Steps | None = None
    while True:
        try:
            what, *told = pipe.recv()
        except EOFError:
            return
        if what == "make":
            machine, reads = told
            steps = Steps(machine, reads)
            tape, _ = steps.make(machine)
        else:
            assert steps is not None
            tape, _ = steps.step(*told)
        pipe.send(tape)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
