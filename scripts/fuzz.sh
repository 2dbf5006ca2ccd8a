#!/usr/bin/env bash
# Runs every fuzz target for the given time each: scripts/fuzz.sh 10m
set -euo pipefail
time=${1:-10s}
cd "$(dirname "$0")/.."
go list ./... | while read -r pkg; do
	dir=$(go list -f '{{.Dir}}' "$pkg")
	grep -ohE 'func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | awk '{print $2}' | while read -r target; do
		echo "== $pkg $target"
		go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null
	done
done
