#!/usr/bin/env bash
# The promised numbers. Ratios against a peer are measured in the same run.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(go version | cut -d' ' -f3)"
go test -run '^$' -bench . -benchtime "${BENCHTIME:-1s}" "$@" ./store ./web ./sandbox/... ./trainer/... ./runner ./stats ./report/...
