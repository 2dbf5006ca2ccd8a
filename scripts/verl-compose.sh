#!/bin/sh
# Composes every preset's overrides with the configuration of real verl
# releases, and compares the keys and defaults of trainer/verl with theirs.
# The packages are fetched without what they depend on, into a cache, and are
# never run: only Hydra reads their YAML. Skipped when they cannot be had.
#
#   scripts/verl-compose.sh [FOLDER]      FOLDER keeps packages and environment
set -eu
cd "$(dirname "$0")/.."
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/alidade/verl-packages}
mkdir -p "$dir"
python=$dir/venv/bin/python
skip() { echo "verl-compose: skipped: $1"; exit 0; }
if [ ! -x "$python" ]; then
	python3 -m venv "$dir/venv" || skip "no Python with venv"
	"$python" -m pip install -q hydra-core || { rm -rf "$dir/venv"; skip "hydra-core cannot be installed"; }
fi
for version in 0.5.0 0.6.1 0.7.1 0.8.0 0.9.0; do
	[ -d "$dir/$version/verl" ] && continue
	rm -rf "$dir/wheel" && "$python" -m pip download -q --no-deps --only-binary=:all: -d "$dir/wheel" "verl==$version" || skip "verl $version cannot be fetched"
	mkdir -p "$dir/$version.part" && "$python" -m zipfile -e "$dir"/wheel/*.whl "$dir/$version.part"
	mv "$dir/$version.part" "$dir/$version"
done
rm -rf "$dir/wheel"
ALIDADE_VERL_PACKAGES=$dir go test -count=1 -timeout 20m -run 'Real' ${VERBOSE:+-v} ./trainer/verl
