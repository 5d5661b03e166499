"""A command that ends when its parent does: `python -I -S die_with_parent.py PPID exec|guard COMMAND ...`

Run as a script, so that it costs 10 ms. `exec`: ask Linux for a SIGKILL at the parent's death and become the
command. `guard`, for commands that start others: stay, and on SIGTERM or at the parent's death kill the whole
process group, whose leader the caller has made this one. Elsewhere than on Linux a parent that is killed
leaves the command running.
"""

import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, mode, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if mode == "guard":
        signal.signal(signal.SIGTERM, _kill_group)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM if mode == "guard" else signal.SIGKILL)
        if os.getppid() != parent:
            # It died before prctl took effect, so no signal will come.
            sys.exit(1)
    try:
        if mode == "exec":
            os.execvp(command[0], command)
        code = subprocess.call(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)
    sys.exit(code if code >= 0 else 128 - code)


def _kill_group(*_: object) -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
