"""Writes what a trainer does as lines of JSON, and asks it to save or stop."""

import json
import math
import os
import time

import torch
from transformers import TrainerCallback

MARK = "complete.json"  # stands in a checkpoint's folder when all of it is on the disk


class Lines:
    """A file of JSON lines. Each is written at once, whole."""

    def __init__(self, path):
        self.file = open(path, "a")

    def write(self, **line):
        self.file.write(json.dumps(line, allow_nan=True, separators=(",", ":")) + "\n")
        self.file.flush()


class Events(TrainerCallback):
    """One line {"step", "time", "data"} for each step. Where a step of the run is
    several updates of the optimizer, the line holds their means."""

    def __init__(self, path, requests, updates=1, save_every=0, total=0):
        self.lines = Lines(path)
        self.requests, self.updates, self.save_every, self.total = requests, updates, save_every, total
        self.sums = {}
        self.began = time.monotonic()
        self.tokens = 0.0
        self.saved = 0
        self.more = None  # function that adds values to a step's line
        self.after = None  # function called at the end of each step

    def on_train_begin(self, args, state, control, **_):
        self.began = time.monotonic()
        self.tokens = float(getattr(state, "num_input_tokens_seen", 0) or 0)
        self.saved = state.global_step // self.updates
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        self.requests.listen(True)

    def on_step_begin(self, args, state, control, **_):
        self.requests.listen(True)

    def on_pre_optimizer_step(self, args, state, control, **_):
        self.requests.listen(False)

    def on_log(self, args, state, control, logs=None, **_):
        if not logs or not state.is_world_process_zero or "train_runtime" in logs:
            return
        for name, value in logs.items():
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                continue
            try:
                value = float(value)
            except ValueError:
                continue
            total, n = self.sums.get(name, (0.0, 0))
            self.sums[name] = (total + value, n + 1)

    def on_step_end(self, args, state, control, **_):
        if state.global_step % self.updates:
            return
        step = state.global_step // self.updates
        if self.requests.stop:
            control.should_training_stop = True
        due = self.save_every and step % self.save_every == 0
        if (due or self.requests.take_save() or self.requests.stop or step == self.total) and self.saved != step:
            control.should_save = True
            self.saved = step

    def on_save(self, args, state, control, **_):
        if not state.is_world_process_zero:
            return
        step = state.global_step // self.updates
        folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        with open(os.path.join(folder, MARK + ".tmp"), "w") as f:
            json.dump({"step": step, "updates": self.updates}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(os.path.join(folder, MARK + ".tmp"), os.path.join(folder, MARK))

    def line(self, state):
        """Writes the line of the step that has just ended."""
        if state.global_step % self.updates or not self.sums or not state.is_world_process_zero:
            return
        now = time.monotonic()
        data = {name: total / n for name, (total, n) in self.sums.items()}
        self.sums = {}
        data["step_time_wall"] = now - self.began
        tokens = data.get("num_tokens")
        if tokens is not None and tokens > self.tokens:
            data["tokens_per_second"] = (tokens - self.tokens) / max(1e-9, now - self.began)
            self.tokens = tokens
        if torch.cuda.is_available():
            data["memory_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
            data["memory_reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
        if self.more:
            data.update(self.more())
        self.lines.write(step=state.global_step // self.updates, time=time.time(), data=data)
        self.began = now


def rounded(values, digits=4):
    return [round(float(v), digits) if math.isfinite(float(v)) else 0.0 for v in values]
