"""Trains a model by TRL's GRPOTrainer in Alidade's environment."""

import sys
import time

from common import Requests, load_job, load_model, load_tokenizer, lora, overridden, precision, read_lines, say, train


def shaping(job):
    """What the trainer adds to the environment's reward for over-long rollouts."""
    if job["overlong"] == "zero":
        return lambda e: -e._score["score"] if e._overlong else 0.0
    if job["overlong"] == "shape":
        buffer, factor = job["overlong_buffer"], job["overlong_penalty"]
        start = job["max_completion_length"] - buffer
        return lambda e: min(0.0, -(e._length - start) / buffer * factor)
    return None


def main(path):
    job = load_job(path)
    requests = Requests(job["dir"], alone=job["processes"] == 1)
    from datasets import Dataset
    from transformers import TrainerCallback, set_seed
    from trl import GRPOConfig

    import env
    from callback import Events
    from loop import TravelTrainer

    set_seed(job["seed"])
    tokenizer = load_tokenizer(job)
    arguments = overridden(job, {**job["config"], **precision(job)})
    config = GRPOConfig(**arguments)
    shape = shaping(job)
    factory = env.environment_class(job["tools"], env.connect(job), job["total_steps"], shape)
    prompts = Dataset.from_list([{k: row[k] for k in ("prompt", "task_id", "split")} for row in read_lines(job["data"]["train"])])
    panel = [{k: row[k] for k in ("prompt", "task_id", "split")} for row in read_lines(job["data"]["eval"])] if job["eval_every"] else []
    events = Events(job["metrics"], requests, updates=job["updates"], save_every=job["save_every"], total=job["total_steps"])

    class Panel(TrainerCallback):
        """Evaluates at the start, now and then, and at the end."""

        def __init__(self):
            self.done = -1

        def play(self, state):
            if not panel or requests.stop or state.global_step % job["updates"]:
                return
            step = state.global_step // job["updates"]
            ends = step in (0, job["total_steps"])
            if self.done == step or not (ends or step % job["eval_every"] == 0):
                return
            self.done = step
            requests.listen(True)
            trainer.evaluate_panel(panel, step, job["eval_samples"] if ends else 1, job["eval_temperature"], job["eval_batch"])
            requests.listen(False)
            events.began = time.monotonic()  # not part of the next step's time

        def on_train_begin(self, args, state, control, **_):
            self.play(state)  # also where a run was stopped: its evaluation may have been cut short

    placed = Panel()
    trainer = TravelTrainer(
        model=load_model(job), args=config, train_dataset=prompts, processing_class=tokenizer, environment_factory=factory,
        callbacks=[events, placed], peft_config=lora(job), job=job, episodes=job["episodes"],
    )  # fmt: skip
    trainer.num_generations_eval = 1
    trainer.events, trainer.panel = events, placed.play
    events.more = lambda: {
        "environment/invalid": trainer.counts["invalid"] / max(1, trainer.counts["n"]), "environment/overlong": trainer.counts["overlong"] / max(1, trainer.counts["n"])
    }  # fmt: skip
    say(f"grpo: {job['objective']}")
    say(f"grpo: {sum(p.numel() for p in trainer.model.parameters())} parameters, {len(prompts)} prompts, {job['total_steps']} steps of {job['updates']} updates, device {trainer.accelerator.device}, {'vLLM' if config.use_vllm else 'transformers'} generates")
    train(trainer, requests, events, job["resume"] or None)
    say(f"grpo: ended at step {trainer.state.global_step // job['updates']} of {job['total_steps']}")


if __name__ == "__main__":
    main(sys.argv[1])
