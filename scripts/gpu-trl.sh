#!/usr/bin/env bash
# One CUDA GPU, under five minutes: SFT and 8 GRPO steps of a model with the
# shape of Qwen2.5-0.5B in bf16 on the travel sandbox, through server, runner
# and shim. The weights are random and made here, so that nothing has to be
# fetched: this measures, it does not train. Prints tokens per second, the GPU's
# series, and the estimate of memory against the measured peak; fails when they
# are more than 25 % apart.
#
#   scripts/gpu-trl.sh [folder]        PYTHON=/path/python uses an environment with TRL in it
#   MODEL=Qwen/Qwen2.5-0.5B-Instruct   takes real weights instead
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(realpath -m "${1:-/tmp/alidade-gpu-trl}")
nvidia-smi -L >/dev/null 2>&1 || { echo "gpu-trl: no NVIDIA GPU here" >&2; exit 1; }
bin=bin/alidade
[ -x "$bin" ] || make build
mkdir -p "$data"
python=${PYTHON:-}
if [ -z "$python" ]; then
	"$bin" trainers install trl --data "$data"
	python="$data/trainers/trl/bin/python"
fi
model=${MODEL:-$data/model-0.5b}
if [ "$model" = "$data/model-0.5b" ] && [ ! -e "$model/config.json" ]; then
	# The tokenizer learns its pieces from texts of the sandbox.
	"$bin" travel synth --cities 12 --n 60 --days 3 --out "$data/queries.jsonl" --traces "$data/traces.jsonl" >/dev/null
	"$python" trainer/trl/python/tiny.py "$model" --traces "$data/traces.jsonl" --shape 0.5b >/dev/null
fi
cat >"$data/study.yaml" <<YAML
name: gpu-trl
question: Does the path of a language model work on this GPU, and how fast?
base:
  preset: quick
  trainer: {kind: trl, devices: 1, memory_gib: 20}
  native: {model: "$model", python: "$python", precision: bf16, engine: hf, max_prompt_tokens: 1536, max_response_tokens: 1024, micro_batch: 4, smoke: skip}
  data: {prompts: 24}
  sft: {traces: 24, epochs: 2, lr: 0.00005, batch: 8, noise: 0, control: false}
  reward: {kind: SUM}
  algorithm: {group_size: 4, prompts_per_step: 4, lr: 0.000005, minibatches: 1, overlong: shape, overlong_buffer_len: 900}
  environment: {world: small, cities: 12, days: 3, budget_factor: 1, max_turns: 8, max_tokens: 8192, form: tools}
  budget: {steps: 8, checkpoint_every: 8}
  evaluation: {every: 100, queries: 4, samples: 1}
factors: []
seeds: [1]
metric: reward/mean
YAML
"$bin" preflight "$data/study.yaml" --data "$data" --notes
"$bin" preflight "$data/study.yaml" --data "$data" --json >"$data/preflight.json"
began=$(date +%s)
timeout 280 "$bin" run "$data/study.yaml" --data "$data" --devices auto
echo "gpu-trl: the run took $(($(date +%s) - began)) s"
"$python" - "$data" <<'PY'
import glob, json, os, sys

data = sys.argv[1]
run = max(glob.glob(os.path.join(data, "runs", "*", "1")), key=os.path.getmtime)
series = {}
for name in ("events.jsonl", "device.jsonl"):
    path = os.path.join(run, name)
    for line in open(path) if os.path.exists(path) else []:
        event = json.loads(line)
        if event["kind"] == "points":
            for k, v in event["points"]["values"].items():
                series.setdefault(k, []).append(float(v))
for k in sorted(series):
    if k.startswith(("gpu/", "speed/", "memory/", "time/", "sft/tokens_per_s")):
        v = series[k]
        print(f"{k:32} {len(v):5} points  mean {sum(v) / len(v):10.2f}  max {max(v):10.2f}")
peak = max(series.get("memory/peak_gib", [0]) + series.get("sft/peak_gib", [0]))
report = json.load(open(os.path.join(data, "preflight.json")))[0]
memory = report.get("memory") or {}
phases = {p["name"]: sum(x["gib"] for x in p["parts"]) for p in memory.get("phases", [])}
print("estimate:", {k: round(v, 2) for k, v in phases.items()}, "GiB; measured peak:", round(peak, 2), "GiB")
if not phases or not peak:
    sys.exit("gpu-trl: nothing to compare")
off = max(phases.values()) / peak - 1
print(f"the estimate is {off:+.0%} off")
if not any(k.startswith("gpu/") for k in series):
    sys.exit("gpu-trl: the run has no series of its GPU")
if abs(off) > 0.25:
    sys.exit("gpu-trl: more than 25 % apart")
PY
