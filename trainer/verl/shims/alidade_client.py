"""Calls of Alidade's environment server, standard library only. Generated."""
import json
import os
import time
import urllib.error
import urllib.request

PROGRESS = "@PROGRESS@"  # "<step> <steps>", written as the run goes on
FORM = "@FORM@"


def call(method, path, body=None, patience=120.0):
    """Repeats what is safe to repeat: calls are numbered, answers are kept."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("@TOKEN_ENV@", "")}
    end, pause = time.monotonic() + patience, 0.2
    while True:
        request = urllib.request.Request(os.environ["ALIDADE_ENV_URL"] + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code not in (429, 503) or time.monotonic() > end:
                raise RuntimeError(f"alidade environment: {method} {path}: {e.code} {e.read()[:500]!r}") from None
        except OSError as e:
            if time.monotonic() > end:
                raise RuntimeError(f"alidade environment: {method} {path}: {e}") from None
        time.sleep(pause)
        pause = min(2 * pause, 5.0)


def progress():
    """The step that rollouts are made for, and the share of steps done before it."""
    try:
        with open(PROGRESS) as f:
            done, total = map(int, f.read().split())
        return done + 1, min(1.0, max(0, done) / max(1, total))
    except (OSError, ValueError):
        return 1, 0.0


def open_episode(task_id, split, rollout, clean=False):
    """Begins an episode of a task and returns its id and its group."""
    evaluation = split != "train"
    step = max(0 if evaluation else 1, progress()[0])
    group = f"{'eval' if evaluation else 'rl'}-{step}-{task_id}"
    made = call("POST", "/env/episodes", {
        "task_id": str(task_id), "split": split, "seed": step, "group_id": group, "rollout_index": rollout, "form": FORM,
        "clean": clean or evaluation, "phase": "eval" if evaluation else "rl", "policy": "policy", "mode": "sampled", "step": step})
    return made["episode_id"], group
