"""Run a command that ends when its parent does: `python -S die_with_parent.py PPID COMMAND ...`.

Run as a script, so that it costs little: it asks Linux for a SIGTERM on the parent's death and becomes the
command. Elsewhere it only becomes the command, and a parent that is killed leaves it running.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # It died before prctl took effect, so no signal will come.
            sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
