"""Fine-tunes a model on the expert's conversations with TRL's SFTTrainer."""

import glob
import math
import os
import shutil
import sys

from callback import MARK, Events
from common import Requests, load_job, load_model, load_tokenizer, lora, model_folder, overridden, precision, read_lines, say, train


def samples(job, tokenizer):
    """Conversations as tokens; only the assistant's are learned."""
    from datasets import Dataset

    from dialogue import labelled
    from trl.chat_template_utils import get_training_chat_template, is_chat_template_prefix_preserving

    template = None
    if not is_chat_template_prefix_preserving(tokenizer):
        template = get_training_chat_template(tokenizer)
    tools = job["tools"] if job["form"] == "tools" else None
    rows, cut, unfit = [], 0, 0
    for trace in read_lines(job["data"]["traces"]):
        made = labelled(tokenizer, trace["messages"], tools, job["max_length"], template)
        if made is None or all(x == -100 for x in made[1]):
            unfit += 1
            continue
        cut += len(made[0]) >= job["max_length"]
        rows.append({"input_ids": made[0], "labels": made[1]})
    if not rows:
        sys.exit(f"none of the {unfit} conversations can be learned: the chat template changes earlier messages, or native.max_prompt_tokens + max_response_tokens ({job['max_length']}) is too short")
    say(f"sft: {len(rows)} conversations, {cut} cut at {job['max_length']} tokens, {unfit} left out; {sum(len(r['input_ids']) for r in rows)} tokens, {sum(x != -100 for r in rows for x in r['labels'])} learned")
    return Dataset.from_list(rows)


def last_checkpoint(folder):
    """The newest checkpoint that is whole; None when there is none."""
    whole = [os.path.dirname(mark) for mark in glob.glob(os.path.join(folder, "checkpoint-*", MARK))]
    return max(whole, key=lambda path: int(path.rsplit("-", 1)[1]), default=None)


def main(path):
    job = load_job(path)
    requests = Requests(job["dir"], alone=job["processes"] == 1)
    from transformers import set_seed
    from trl import SFTConfig, SFTTrainer

    class Trainer(SFTTrainer):
        def log(self, logs, start_time=None):
            super().log(logs, start_time)
            events.line(self.state)

    set_seed(job["seed"])
    tokenizer = load_tokenizer(job)
    data = samples(job, tokenizer)
    batch = min(job["sft"]["batch"], len(data))
    micro = max(1, min(job["micro_batch"], batch))
    accumulate = max(1, batch // (micro * job["processes"]))
    steps = max(1, math.ceil(len(data) / (micro * accumulate * job["processes"])) * job["sft"]["epochs"])
    arguments = overridden(job, {
        "output_dir": job["state"], "per_device_train_batch_size": micro, "gradient_accumulation_steps": accumulate,
        "max_steps": math.ceil(steps), "learning_rate": job["sft"]["lr"], "lr_scheduler_type": "cosine", "warmup_steps": max(1, round(0.05 * steps)),
        "logging_steps": 1, "save_strategy": "no", "save_total_limit": 1, "report_to": "none", "seed": job["seed"],
        "max_length": job["max_length"], "packing": False, "remove_unused_columns": False, "disable_tqdm": True,
        "max_grad_norm": 1.0, "dataloader_pin_memory": False, **precision(job),
    })  # fmt: skip
    events = Events(job["metrics"], requests, save_every=max(1, math.ceil(steps) // 4), total=0)
    trainer = Trainer(
        model=load_model(job), args=SFTConfig(**arguments), train_dataset=data, processing_class=tokenizer, callbacks=[events], peft_config=lora(job)
    )
    say(f"sft: {math.ceil(steps)} steps of {micro * accumulate * job['processes']} conversations, model {model_folder(job)}, {sum(p.numel() for p in trainer.model.parameters())} parameters")
    train(trainer, requests, events, last_checkpoint(job["state"]))
    if requests.stop and trainer.state.global_step < math.ceil(steps):
        say(f"sft: stopped at step {trainer.state.global_step} of {math.ceil(steps)}, saved")
        return
    model = trainer.accelerator.unwrap_model(trainer.model)
    if job["lora_rank"] > 0:
        model = model.merge_and_unload()
    if trainer.accelerator.is_main_process:
        model.save_pretrained(job["out"])
        tokenizer.save_pretrained(job["out"])
        shutil.rmtree(job["state"], ignore_errors=True)  # what a run that was cut short would go on from


if __name__ == "__main__":
    main(sys.argv[1])
