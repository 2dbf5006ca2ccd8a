#!/usr/bin/env bash
# Race tests of every package, then, without the race detector, the few tests
# that are one thread of arithmetic. A browser test that finds no browser skips
# on a developer's machine and fails where CI is set.
set -euo pipefail
cd "$(dirname "$0")/.."
export ALIDADE_BIN="$PWD/bin/alidade"
go test -race -count=1 -timeout 14m "$@" ./...
go test -count=1 -run 'TestAnotherKernelIsWarnedOf|TestNumbersBelongToTheCodeVersion' ./trainer/cpu
go test -count=1 -run TestCoverage ./stats
