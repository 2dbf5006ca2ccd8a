#!/usr/bin/env bash
# Trains a tiny language model with the real TRL through server, runner and
# shim: SFT, a smoke run, 20 GRPO steps on the travel sandbox, stop, resume,
# report. Installs TRL first (3 GB to fetch, 6 GB on the disk) into
# ALIDADE_TRL_DATA, by default a folder of the user's cache, where the next
# call finds it. With --if-possible what cannot be installed is a message and
# no failure; ALIDADE_SKIP_TRL=1 leaves it out.
set -euo pipefail
cd "$(dirname "$0")/.."
possible=${1:-}
skip() {
	echo "test-trl: skipped: $1"
	exit 0
}
if [ "$possible" = --if-possible ] && [ -n "${ALIDADE_SKIP_TRL:-}" ]; then
	skip "ALIDADE_SKIP_TRL is set"
fi
export ALIDADE_TRL_DATA=${ALIDADE_TRL_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/alidade-trl}
export ALIDADE_BIN="$PWD/bin/alidade"
mkdir -p "$ALIDADE_TRL_DATA"

free=$(df -Pk "$ALIDADE_TRL_DATA" | awk 'NR == 2 {print int($4 / 1048576)}')
if [ ! -e "$ALIDADE_TRL_DATA/trainers/trl/alidade-requirements" ] && [ "$free" -lt 12 ]; then
	[ "$possible" = --if-possible ] && skip "TRL needs 12 GiB of free disk in $ALIDADE_TRL_DATA, there are $free"
	echo "test-trl: 12 GiB of free disk are needed in $ALIDADE_TRL_DATA, there are $free" >&2
	exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! timeout "${ALIDADE_TRL_INSTALL_S:-420}" "$ALIDADE_BIN" trainers install trl --data "$ALIDADE_TRL_DATA" >"$log" 2>&1; then
	tail -n 5 "$log"
	[ "$possible" = --if-possible ] && skip "TRL cannot be installed here (see above); a later call goes on where this one ended"
	exit 1
fi
tail -n 1 "$log"
exec go test -count=1 -timeout 90m -v -run '^(TestTRL|TestDialogue)$' . ./trainer/trl
