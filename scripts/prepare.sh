#!/usr/bin/env bash
# Installs what the tests need and this machine lacks, and says so: a browser
# and fonts. Go, gcc, make, Node and npm are expected to be there.
set -euo pipefail
for tool in go gcc make node npm; do
	command -v "$tool" >/dev/null || { echo "prepare: $tool is missing; install it first" >&2; exit 1; }
done

need=()
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || need+=(chromium-headless-shell fonts-liberation fonts-dejavu-core)
command -v python3 >/dev/null || need+=(python3)
if [ ${#need[@]} -eq 0 ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "prepare: please install ${need[*]} (this machine has no apt-get)" >&2
	exit 1
fi
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "prepare: installing ${need[*]}"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${need[@]}"
