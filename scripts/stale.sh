#!/usr/bin/env bash
# Fails when a generated templ file differs from what its source gives.
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files '*_templ.go' '*.templ' | while read -r f; do
	mkdir -p "$copy/$(dirname "$f")"
	cp "$f" "$copy/$f"
done
cp go.mod go.sum "$copy/"
go tool -modfile=tools/go.mod templ generate -path "$copy" -log-level error
stale=0
while read -r f; do
	if ! cmp -s "$f" "$copy/$f"; then
		echo "stale: $f differs from what its .templ gives; run make generate" >&2
		stale=1
	fi
done < <(git ls-files '*_templ.go')
while read -r f; do
	g="${f%.templ}_templ.go"
	git ls-files --error-unmatch "$g" >/dev/null 2>&1 || { echo "stale: $g is not committed" >&2; stale=1; }
done < <(git ls-files '*.templ')
exit $stale
