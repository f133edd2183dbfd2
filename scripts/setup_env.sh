#!/bin/sh
# usage: [PYTHON=...] sh scripts/setup_env.sh EXTRA ...        (the Makefile calls it)
#
# Has pip install the project into .venv; returns at once when that is done.
# .venv/setup.stamp says for which interpreter and folder .venv was made, and is empty
# where that was broken off. .venv/setup.EXTRA is the pyproject.toml last installed from.
fail() { echo "error: set-up failed: $*" >&2; exit 1; }

cd "$(dirname "$0")/.." || exit 1
find_base='import os, sys
sys.version_info < (3, 10) or print(os.path.realpath(sys.executable))'
for python in ${PYTHON:-.venv/bin/python python3 python3.13 python3.12 python3.11 python3.10}; do
  base=$("$python" -I -c "$find_base" 2>/dev/null)
  [ "$base" ] && break
done
[ "$base" ] || fail "'${PYTHON:-python3}' is missing, or older than Python 3.10"

is_made() { [ -x .venv/bin/python ] && [ "$(cat .venv/setup.stamp)" = "$PWD $base" ]; } 2>/dev/null
is_ready() { is_made && for e; do cmp -s pyproject.toml ".venv/setup.$e" || return 1; done; }
is_ready "$@" && exit
for e; do
  grep -q "^$e = \[" pyproject.toml || fail "pyproject.toml has no extra '$e'"
done

exec 9<pyproject.toml # two makes at once: the second waits for the first
if command -v flock >/dev/null && ! flock -n 9; then
  echo "waiting for another set-up of .venv"
  flock 9 && is_ready "$@" && exit
fi
trap 'fail "interrupted; the next one starts afresh"' INT TERM
if ! is_made; then
  [ ! -e .venv ] || ls .venv/setup.* >/dev/null 2>&1 ||
    fail ".venv was made by something else: move it out of the way"
  "$base" -I -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$base has no venv: apt-get install python3-venv, or set PYTHON to another one"
  mkdir -p .venv && : >.venv/setup.stamp && # which says that it is ours: never deleted
    find .venv -mindepth 1 ! -name setup.stamp -delete && "$base" -I -m venv .venv ||
    fail "$base cannot make .venv"
fi
: >.venv/setup.stamp # what is broken off from here on is made anew
extras=$(echo "$@" | tr ' ' ,)
echo "installing alcop-mlir[$extras] into .venv"
.venv/bin/python -I -m pip --disable-pip-version-check --no-input install -e ".[$extras]"
status=$? # pip that fails by itself leaves things unchanged
echo "$PWD $base" >.venv/setup.stamp
[ $status = 0 ] || fail "the reason is among pip's last lines"
for e; do cp pyproject.toml ".venv/setup.$e"; done
