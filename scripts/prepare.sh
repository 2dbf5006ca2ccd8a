#!/usr/bin/env bash
# Installs what the tests need and this machine lacks, and says so: a browser
# and fonts, Slurm for a cluster on loopback. Go, gcc, make, Node and npm are expected to be there.
set -euo pipefail
for tool in go gcc make node npm; do
	command -v "$tool" >/dev/null || { echo "prepare: $tool is missing; install it first" >&2; exit 1; }
done

need=()
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || need+=(chromium-headless-shell fonts-liberation fonts-dejavu-core)
command -v python3 >/dev/null || need+=(python3)
slurm=()
command -v sbatch >/dev/null || slurm+=(slurm-wlm)
{ command -v munged || [ -x /usr/sbin/munged ]; } >/dev/null || slurm+=(munge)
if [ ${#need[@]} -eq 0 ] && [ ${#slurm[@]} -eq 0 ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "prepare: please install ${need[*]} ${slurm[*]} (this machine has no apt-get)" >&2
	exit 1
fi
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "prepare: installing ${need[*]} ${slurm[*]}"
$sudo apt-get update -qq
install() { DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$@"; }
if [ ${#need[@]} -gt 0 ]; then
	install "${need[@]}"
fi
if [ ${#slurm[@]} -gt 0 ]; then
	install "${slurm[@]}" || echo "prepare: no Slurm here: its tests are skipped, and fail where CI is set" >&2
fi
