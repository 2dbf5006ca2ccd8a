#!/usr/bin/env bash
# The demo: a real ablation, live in the browser, and its report.
set -euo pipefail
data=$1 study=$2
bin/alidade run "$study" --data "$data" --addr "${ADDR:-127.0.0.1:0}" --wait --report report
echo "Keep looking at the same data with: make serve"
