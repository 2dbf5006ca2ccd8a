"""GRPOTrainer with the environment's conversation: the same turns, budgets and
texts as in Alidade's own loop, with the calls of all rollouts under way at the
same time. TRL's own loop calls one rollout's tool after the other's.

It relies on methods that TRL keeps to itself, so it belongs to the version that
requirements.txt names.
"""

import torch
from callback import Lines, rounded
from dialogue import read_turn, suffix
from trl import GRPOTrainer
from trl.chat_template_utils import parse_response

ONE_CALL = "Only one call a turn: this one was not run."


class Rollout:
    """One conversation under way."""

    def __init__(self, environment, prompt, prompt_ids, ids, logprobs):
        self.environment = environment
        self.messages = list(prompt)
        self.prompt_ids = prompt_ids
        self.ids = ids  # the completion: turns and what was answered
        self.mask = [1] * len(ids)  # 1 for what the model wrote
        self.logprobs = None if logprobs is None else list(logprobs)
        self.spans = []  # [begin, end) of each turn in the completion
        self.turn = None  # the turn last written
        self.answers = []  # messages that answered it
        self.over = False
        self.overlong = False
        self.future = None  # the call under way

    def extend(self, ids, written, logprobs=None):
        self.ids = self.ids + ids
        self.mask += [1 if written else 0] * len(ids)
        if self.logprobs is not None:
            self.logprobs += list(logprobs) if logprobs is not None else [0.0] * len(ids)


class TravelTrainer(GRPOTrainer):
    def __init__(self, *args, job, episodes, **kwargs):
        super().__init__(*args, **kwargs)
        self.job, self.form = job, job["form"]
        self.tool_schemas = job["tools"] if self.form == "tools" else []
        self._env_tools = {None: self.tool_schemas}  # the environment's own words, or none in the text form
        self.updates = job["updates"]
        self.episodes = Lines(f"{episodes}-{self.accelerator.process_index}.jsonl")
        self.environments = None
        self.events = None  # callback that writes a step's line
        self.panel = None  # function called after a step's line
        self.counts = {"n": 0, "invalid": 0, "overlong": 0}

    # The rows of a batch learn who they are before TRL resets their environments.
    def _generate_and_score_completions(self, inputs):
        training = self.model.training
        step = self.state.global_step // self.updates + 1
        first = self.accelerator.process_index * len(inputs)
        if training:
            rows = []
            for i, row in enumerate(inputs):
                group, rollout = divmod(first + i, self.num_generations)
                rows.append({**row, "_group": f"rl-{step}-{group}", "_rollout": rollout, "_step": step, "_seed": step, "_phase": "rl"})
            inputs = rows
        output = super()._generate_and_score_completions(inputs)
        if training:
            self.counts = {
                "n": len(inputs), "invalid": sum(e._failed is not None for e in self.environments), "overlong": sum(e._overlong for e in self.environments)
            }  # fmt: skip
            self._record(output)
        return output

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        if self.job["overlong"] == "shape" or self.job["overlong"] == "zero":
            for environment, ids in zip(self.environments, completion_ids_list, strict=True):
                environment._length = len(ids)
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    def _tool_call_loop(self, prompts, prompt_ids, completion_ids, completions, logprobs, images, multimodal_fields):
        rollouts = [
            Rollout(e, prompts[i], prompt_ids[i], completion_ids[i], None if logprobs is None else logprobs[i]) for i, e in enumerate(self.environments)
        ]
        for r in rollouts:
            self._read(r, r.ids)
        calls = 0
        while active := [r for r in rollouts if not r.over]:
            calls += len(active)
            self._call_tools(active)
            going = [r for r in active if not r.over]
            if going:
                self._write(going)
        if not self.use_vllm:
            self.generation_config.max_new_tokens = self.max_completion_length
        for r in rollouts:
            r.environment._finish("" if r.turn.calls else r.turn.text, [plain(m) for m in r.messages], r.overlong)
            r.environment._spans = r.spans
        lost = sum(r.environment._failed is not None for r in rollouts)
        said = [r.messages[len(prompts[i]) :] for i, r in enumerate(rollouts)]
        made = None if logprobs is None else [r.logprobs for r in rollouts]
        return [r.mask for r in rollouts], said, [r.ids for r in rollouts], made, calls, lost, [[] for _ in rollouts]

    def _call_tools(self, rollouts):
        """Calls one tool for each rollout, all at once, and puts the answers behind
        the turns that asked."""
        for r in rollouts:
            name, arguments = r.turn.calls[0]
            begin, end = r.spans[-1]
            r.future = r.environment.client.pool.submit(r.environment._call, name, arguments, r.turn.think, end - begin)
        for r in rollouts:
            self._answer(r)
            if r.over and not r.overlong:
                continue
            more = suffix(self._tokenizer, r.answers, self.tool_schemas, self.chat_template)
            room = self.max_completion_length - len(r.ids)
            if len(more) >= room or len(r.prompt_ids) + len(r.ids) + len(more) >= self.model.config.max_position_embeddings:
                r.over = r.overlong = True
            if r.over:  # part of it, so that TRL too sees a completion without an end
                more = more[: max(0, min(room, len(more) - 1))]
            r.extend(more, written=False)

    def _write(self, rollouts):
        """Lets the model write the next turn of each rollout."""
        limit = self.max_completion_length
        if not self.use_vllm:
            self.generation_config.max_new_tokens = max(limit - len(r.ids) for r in rollouts)
        written, logprobs = self._generate_single_turn([r.prompt_ids + r.ids for r in rollouts], None, {}, 1)
        for k, r in enumerate(rollouts):
            ids = list(written[k])[: limit - len(r.ids)]
            r.extend(ids, written=True, logprobs=None if logprobs is None else logprobs[k][: len(ids)])
            self._read(r, ids)

    def _read(self, rollout, ids):
        """Takes in a turn that the model has written: the end of the completion."""
        begin = len(rollout.ids) - len(ids)
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        parsed = None
        if self.form == "tools" and ids:
            parsed = parse_response(self._tokenizer, ids, prefix=rollout.prompt_ids + rollout.ids[:begin], tools=self.tool_schemas)
        rollout.turn = read_turn(text, parsed)
        rollout.spans.append((begin, len(rollout.ids)))
        rollout.messages.append(rollout.turn.message(self.form, len(rollout.spans)))
        cut = not ids or ids[-1] not in self.eos_token_ids
        rollout.overlong = rollout.overlong or cut
        rollout.over = cut or not rollout.turn.calls

    def _answer(self, rollout):
        """Takes in a tool's answer."""
        text = rollout.future.result()
        if self.form == "react":
            rollout.answers = [{"role": "user", "content": f"<tool_response>\n{text}</tool_response>"}]
        else:
            rollout.answers = [
                {"role": "tool", "name": call["function"]["name"], "content": text if k == 0 else ONE_CALL, "tool_call_id": call["id"]}
                for k, call in enumerate(rollout.messages[-1]["tool_calls"])
            ]
        environment = rollout.environment
        if environment._failed is not None or environment._done:
            rollout.over = True
            rollout.overlong = rollout.overlong or environment._failed is None and environment._context
            return
        rollout.messages += rollout.answers

    def _record(self, output):
        """Writes what only the trainer knows of each episode."""
        advantages = output["advantages"].tolist()
        mask = output["completion_mask"] * output.get("tool_mask", 1)
        generated = mask.sum(1).tolist()
        lengths = output["completion_mask"].sum(1).tolist()
        detail = self._detail(output, min(len(advantages), 2 * self.num_generations))
        groups = {}
        for e in self.environments:
            if e._score is not None and e._failed is None:
                groups.setdefault(e._row["_group"], []).append(e._score["score"] + e._extra)
        for i, e in enumerate(self.environments):
            if e._id is None or e._failed is not None:
                self.episodes.write(kind="invalid", step=e._row["_step"], group=e._row["_group"], rollout=e._row["_rollout"], why=e._failed)
                continue
            rewards = groups[e._row["_group"]]
            mean = sum(rewards) / len(rewards)
            spread = (sum((x - mean) ** 2 for x in rewards) / max(1, len(rewards) - 1)) ** 0.5
            line = {
                "kind": "episode", "id": e._id, "step": e._row["_step"], "group": e._row["_group"], "rollout": e._row["_rollout"],
                "reward": e._score["score"] + e._extra, "extra": e._extra, "advantage": advantages[i], "mean": mean, "std": spread, "members": len(rewards),
                "in_loss": generated[i] > 0 and not (self.job["overlong"] == "mask" and e._overlong), "overlong": e._overlong,
                "tokens": int(output["prompt_mask"][i].sum()) + lengths[i], "generated": generated[i], "turns": [end - begin for begin, end in e._spans],
            }  # fmt: skip
            if i in detail:
                line["detail"] = detail[i]
            self.episodes.write(**line)

    def _detail(self, output, n):
        """Entropy, log-probability and text of each written token, for the first
        n rollouts of a step: one more forward pass over them."""
        if not self.job["detail"] or n == 0:
            return {}
        prompt_ids, completion_ids = output["prompt_ids"][:n], output["completion_ids"][:n]
        attention = torch.cat([output["prompt_mask"][:n], output["completion_mask"][:n]], dim=1)
        with torch.no_grad():
            logprobs, entropies, _ = self._get_per_token_logps_and_entropies(
                self.model, torch.cat([prompt_ids, completion_ids], dim=1), attention, completion_ids.size(1),
                batch_size=self.args.per_device_train_batch_size, compute_entropy=True,
            )  # fmt: skip
        out = {}
        for i in range(n):
            turns = []
            for begin, end in self.environments[i]._spans:
                ids = completion_ids[i][begin:end].tolist()
                turns.append({
                    "entropy": rounded(entropies[i][begin:end].tolist()), "logprobs": rounded(logprobs[i][begin:end].tolist()),
                    "words": [self._tokenizer.decode([t]) for t in ids],
                })  # fmt: skip
            out[i] = turns
        return out

    def evaluate_panel(self, rows, step, samples, temperature, batch):
        """Plays the held-out panel with the present policy. The environment server
        keeps the outcome; what is drawn here does not change training."""
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        jobs = [{**row, "_group": f"eval-{step}-{k}", "_rollout": s, "_step": step, "_seed": s, "_phase": "eval"} for s in range(samples) for k, row in enumerate(rows)]
        mine = jobs[rank::world]
        need = -(-len(jobs) // world)
        mine += [{**jobs[0], "_phase": "spare", "_group": ""}] * (need - len(mine))  # all processes must take part equally often
        kept = self.generation_config.temperature if not self.use_vllm else None
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.manual_seed(1_000_003 * step + rank)
            self.model.eval()
            if kept is not None:
                self.generation_config.temperature = temperature
            try:
                for at in range(0, len(mine), batch):
                    self._generate_and_score_completions(mine[at : at + batch])
            finally:
                if kept is not None:
                    self.generation_config.temperature = kept
                self._metrics["eval"].clear()
                self.model.train()

    def log(self, logs, start_time=None):
        super().log(logs, start_time)
        if self.events is not None:
            self.events.line(self.state)
        if self.panel is not None:
            self.panel(self.state)


def plain(message):
    """A message as chat completions have it."""
    out = {"role": message["role"], "content": message.get("content") or ""}
    for key in ("tool_calls", "tool_call_id"):
        if message.get(key):
            out[key] = message[key]
    return out
