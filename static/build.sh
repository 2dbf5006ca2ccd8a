#!/bin/sh
# Bundles the browser side into static/dist. Run from the module's root after `npm ci --ignore-scripts`.
set -eu
go tool -modfile=tools/go.mod esbuild static/src/app.ts static/css/app.css static/img/icon.svg \
	--bundle --minify --target=es2022,chrome120,firefox120,safari17.5 --format=iife \
	--loader:.svg=copy --entry-names='[name]' --outdir=static/dist \
	--log-level=warning "$@"
{
	echo "Alidade's pages contain these libraries:"
	for d in node_modules/uplot; do
		echo
		echo "== $(basename "$d") $(sed -n 's/.*"version": "\([^"]*\)".*/\1/p' "$d/package.json" | head -1)"
		echo
		cat "$d"/LICENSE*
	done
} >static/dist/notices.txt
