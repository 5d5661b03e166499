#!/bin/sh
# Makes .venv out of uv.lock, on a machine that has only Python: uv comes from PyPI when it is not on PATH, and
# Python itself is the system's, never downloaded.
set -eu
UV_VERSION=0.9.9

fail() { printf 'make: %s\n' "$1" >&2; exit 1; }

suits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; }

python=
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
  if suits "$candidate"; then python=$(command -v "$candidate"); break; fi
done
[ -n "$python" ] || fail "Python 3.11, 3.12 or 3.13 is needed and was not found. Set PYTHON=/path/to/python3 if it is elsewhere."

# A uv that is too old for our pyproject.toml is as good as none.
uv=$(command -v uv || true)
if [ -z "$uv" ] || ! "$uv" --project . tree --frozen --depth 0 >/dev/null 2>&1; then
  uv=.tools/uv/bin/uv
  if [ "$("$uv" --version 2>/dev/null | cut -d' ' -f2)" != "$UV_VERSION" ]; then
    echo "Installing uv $UV_VERSION into .tools/uv"
    rm -rf .tools/uv
    # Debian splits venv from Python: without it, pip alone does.
    if "$python" -m venv .tools/uv >/dev/null 2>&1; then
      .tools/uv/bin/python -m pip install --quiet "uv==$UV_VERSION" || fail "pip could not install uv $UV_VERSION (see above)."
    elif rm -rf .tools/uv && "$python" -m pip --version >/dev/null 2>&1; then
      "$python" -m pip install --quiet --target .tools/uv "uv==$UV_VERSION" || fail "pip could not install uv $UV_VERSION (see above)."
    else
      fail "$python has neither venv nor pip. On Debian and Ubuntu: apt-get install python3-venv. Or install uv."
    fi
  fi
fi

UV_PYTHON_DOWNLOADS=never "$uv" sync --quiet --frozen --all-packages --all-groups --all-extras --python "$python"
