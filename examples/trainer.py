#!/usr/bin/env python3
"""A trainer for Alidade in Python, standard library only.

It learns a small problem for real: a contextual bandit. A query shows one of
eight contexts; each of four arms pays 1 with a probability that depends on
the context. The policy is a softmax over arms for each context, trained by
policy gradient with group-normalised advantages, as GRPO does.

    python3 trainer.py --spec spec.json

SIGUSR1 asks for a checkpoint, SIGTERM for a checkpoint and a clean end. The
protocol is described in docs/trainer-protocol.md.
"""

import argparse
import json
import math
import os
import random
import signal
import socket
import sys
import time

CONTEXTS, ARMS = 8, 4


class Events:
    """Appends events, one line and one write each."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind, **body):
        event = {"v": 1, "kind": kind, "t": int(time.time() * 1000), kind: body}
        os.write(self.fd, (json.dumps(event, allow_nan=False) + "\n").encode())

    def points(self, step, **values):
        values = {k.replace("__", "/"): number(v) for k, v in values.items()}
        self.write("points", step=step, values=values)

    def close(self):
        os.fsync(self.fd)
        os.close(self.fd)


def number(x):
    """JSON has no NaN and no Infinity: the protocol writes them as strings."""
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "+Inf" if x > 0 else "-Inf"
    return x


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


class Trainer:
    def __init__(self, spec):
        recipe = spec["recipe"]
        self.spec, self.algorithm, self.evaluation = spec, recipe["algorithm"], recipe["evaluation"]
        self.steps, self.every = recipe["budget"]["steps"], recipe["budget"]["checkpoint_every"]
        world = random.Random(recipe["data"]["seed"])  # the same problem for all arms and seeds
        self.pays = [[world.random() for _ in range(ARMS)] for _ in range(CONTEXTS)]
        self.logits = [[0.0] * ARMS for _ in range(CONTEXTS)]
        self.rng = random.Random(spec["seed"])
        self.step = 0
        self.stop = self.save = False
        if spec.get("resume_from"):
            self.load(spec["resume_from"])
        self.events = Events(spec["events"])

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "save", True))
        self.events.write("hello", trainer="bandit.py", version="1", pid=os.getpid(), host=socket.gethostname(),
                          total_steps=self.steps, info={"python": sys.version.split()[0]})
        self.events.write("phase", name="rl", step=self.step, total=self.steps, main=True)
        best = sum(max(row) for row in self.pays) / CONTEXTS
        self.events.points(0, baseline__random_legal=sum(map(sum, self.pays)) / CONTEXTS / ARMS, baseline__expert=best)
        if self.step == 0:
            self.evaluate()
        while self.step < self.steps and not self.stop:
            self.step += 1
            self.update()
            if self.step % self.evaluation["every"] == 0 or self.step == self.steps:
                self.evaluate()
            if self.save or self.step % self.every == 0 or self.step == self.steps:
                self.checkpoint()
        if self.stop and self.step < self.steps:
            self.checkpoint()
            self.events.write("done", ok=False, step=self.step, reason="stopped")
        else:
            self.events.write("done", ok=True, step=self.step, reason="finished")
        self.events.close()

    def pull(self, context, rng):
        """Samples an arm and what it pays."""
        arm = rng.choices(range(ARMS), softmax(self.logits[context]))[0]
        return arm, float(rng.random() < self.pays[context][arm])

    def update(self):
        """One step: groups of pulls, advantages within each group, ascent."""
        began, rewards, norm, flat = time.monotonic(), [], 0.0, 0
        prompts, size = self.algorithm["prompts_per_step"], self.algorithm["group_size"]
        for group in range(prompts):
            context = self.rng.randrange(CONTEXTS)
            probabilities = softmax(self.logits[context])
            pulls = [self.pull(context, self.rng) for _ in range(size)]
            paid = [reward for _, reward in pulls]
            mean = sum(paid) / size
            spread = math.sqrt(sum((r - mean) ** 2 for r in paid) / size)
            rewards += paid
            if spread == 0:  # all alike: nothing to learn from
                flat += 1
                continue
            gradient = [0.0] * ARMS
            for arm, reward in pulls:
                advantage = (reward - mean) / (spread if self.algorithm["norm_adv_by_std"] else 1.0)
                for a in range(ARMS):
                    gradient[a] += advantage * ((a == arm) - probabilities[a]) / size
            for a in range(ARMS):
                self.logits[context][a] += self.algorithm["lr"] * gradient[a]
            norm += math.sqrt(sum(g * g for g in gradient))
        spent = time.monotonic() - began
        self.events.points(
            self.step, reward__mean=sum(rewards) / len(rewards), policy__entropy=self.entropy(), policy__lr=self.algorithm["lr"],
            policy__grad_norm=norm / max(prompts - flat, 1) if flat < prompts else math.nan,
            group__zero_variance=flat / prompts, time__step_s=spent)

    def entropy(self):
        rows = [softmax(row) for row in self.logits]
        return -sum(p * math.log(p) for row in rows for p in row if p > 0) / CONTEXTS

    def evaluate(self):
        """The fixed panel: the same queries at every step, in every arm and seed."""
        rng = random.Random(f"{self.spec['seed']} {self.step}")  # does not disturb training
        samples = self.evaluation["samples"]
        queries = []
        for i in range(self.evaluation["queries"]):
            passed = sum(self.pull(i % CONTEXTS, rng)[1] == 1.0 for _ in range(samples))
            queries.append({"q": f"{i:016x}", "level": ("easy", "medium", "hard")[i % 3], "passed": passed})
        total = sum(q["passed"] for q in queries)
        self.events.write("evaluation", panel="test", policy="policy", mode="sampled", step=self.step, samples=samples,
                          hash="bandit", queries=queries)
        self.events.points(self.step, eval__success=total / (samples * len(queries)))
        arm, reward = self.pull(0, rng)
        self.events.write(
            "trajectory", id=f"eval-{self.step}-0-0", phase="eval", policy="policy", step=self.step, group=f"eval-{self.step}-0",
            rollout=0, mode="sampled", query={"hash": f"{0:016x}", "text": "Context 0: which arm pays?", "level": "easy"},
            turns=[{"call": {"tool": "Pull", "args": [{"name": "arm", "value": str(arm)}]},
                    "observe": {"text": f"paid {reward:.0f}", "tokens": 0}, "tokens": 1}],
            reward=reward, reward_kind="payout", components=[{"name": "payout", "value": reward}], success=reward == 1.0,
            end="answer", tokens=1, generated=1, tool_calls=1, tool_errors=0, injected=0)

    def checkpoint(self):
        """Writes all that an exact resume needs, then says that it is complete."""
        name = f"checkpoints/step-{self.step:06d}"
        folder = os.path.join(self.spec["dir"], name)
        os.makedirs(folder, exist_ok=True)
        state = {"step": self.step, "logits": self.logits, "rng": self.rng.getstate()}
        path = os.path.join(folder, "policy.json")
        with open(path + ".tmp", "w") as f:
            json.dump(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)
        self.save = False
        self.events.write("checkpoint", step=self.step, path=name, bytes=os.path.getsize(path))

    def load(self, folder):
        with open(os.path.join(folder, "policy.json")) as f:
            state = json.load(f)
        self.step, self.logits = state["step"], state["logits"]
        version, internal, gauss = state["rng"]
        self.rng.setstate((version, tuple(internal), gauss))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a trainer for Alidade: a contextual bandit")
    parser.add_argument("--spec", required=True, help="path of spec.json")
    with open(parser.parse_args().spec) as spec_file:
        Trainer(json.load(spec_file)).run()
