"""What SFT and GRPO share: the job, the model, the tokenizer, signals."""

import json
import os
import signal
import sys

import torch


def load_job(path):
    with open(path) as f:
        return json.load(f)


def read_lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


class Stopped(Exception):
    """Raised where the process was asked to end: between two updates."""


class Requests:
    """What was asked of the process by signals, or by the file `save`. A request
    to end is heard at once while rollouts are made and gradients computed, and
    never inside an update of the weights or while a checkpoint is written."""

    def __init__(self, directory, alone=True):
        self.stop = False
        self.save = False
        self.alone = alone  # with other processes all must end at the same step
        self.open = False
        self.file = os.path.join(directory, "save")
        signal.signal(signal.SIGTERM, self._term)
        signal.signal(signal.SIGINT, self._term)
        signal.signal(signal.SIGUSR1, self._usr1)

    def _term(self, *_):
        self.stop = True
        if self.open:
            self.open = False
            raise Stopped

    def _usr1(self, *_):
        self.save = True

    def listen(self, open):
        """Says whether the process may be ended from here on."""
        self.open = open and self.alone
        if self.open and self.stop:
            self.open = False
            raise Stopped

    def take_save(self):
        """Tells once whether a checkpoint was asked for."""
        asked = self.save or os.path.exists(self.file)
        self.save = False
        if os.path.exists(self.file):
            os.remove(self.file)
        return asked


def train(trainer, requests, events, resume):
    """Trains until the end or until asked to end, which leaves a checkpoint of
    the last whole step."""
    try:
        trainer.train(resume_from_checkpoint=resume)
    except Stopped:
        requests.listen(False)
        state = trainer.state
        step = state.global_step // events.updates
        if state.global_step % events.updates == 0 and step > 0 and events.saved != step:
            trainer.model.train()
            trainer._save_checkpoint(trainer.model, trial=None)
            events.on_save(trainer.args, state, trainer.control)
    requests.listen(False)


def on_gpu():
    return torch.cuda.is_available()


def use_bf16(job):
    wanted = job["precision"]
    if wanted == "auto":
        return on_gpu() and torch.cuda.is_bf16_supported()
    return wanted == "bf16"


def load_tokenizer(job):
    """The model's tokenizer, ready for prompts on the left and tool calls."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_folder(job))
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.chat_template is None:
        sys.exit(f"{job['model']}: the tokenizer has no chat template; use an instruct model, or add one to its folder")
    teach_parsing(tokenizer)
    return tokenizer


def teach_parsing(tokenizer):
    """Tells the tokenizer how its template writes tool calls, where TRL does
    not know the template: calls as JSON between tool_call tags."""
    from trl import chat_template_utils as utils

    if getattr(tokenizer, "response_template", None) is not None:
        return
    try:
        utils.add_response_schema(tokenizer)
    except ValueError:
        if "<tool_call>" in tokenizer.chat_template:
            tokenizer.response_template = utils.qwen3_template


def model_folder(job):
    """The model's name or folder; tiny is made on the spot, once."""
    if job["model"] != "tiny":
        return job["model"]
    folder = os.path.join(job["dir"], "tiny")
    if not os.path.exists(os.path.join(folder, "config.json")):
        import tiny

        tiny.make(folder, job["data"], job["data_seed"])
    return folder


def load_model(job):
    """The model in full precision; under LoRA its frozen weights in bf16."""
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if job["lora_rank"] > 0 and use_bf16(job) else torch.float32
    return AutoModelForCausalLM.from_pretrained(model_folder(job), dtype=dtype)


def lora(job):
    if job["lora_rank"] <= 0:
        return None
    from peft import LoraConfig

    return LoraConfig(r=job["lora_rank"], lora_alpha=2 * job["lora_rank"], target_modules="all-linear", task_type="CAUSAL_LM")


def precision(job):
    """The arguments of a trainer that say how it computes."""
    # Under this name TRL turns it on unless told otherwise.
    return {"bf16": use_bf16(job), "fp16": False, "use_cpu": not on_gpu(), "gradient_checkpointing": job["gradient_checkpointing"]}


def typed(text):
    """A value of native.overrides: JSON where it is JSON, else a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def overridden(job, arguments):
    """Applies native.overrides last."""
    for key, value in (job.get("overrides") or {}).items():
        arguments[key] = typed(value)
    return arguments


def say(text):
    print(text, flush=True)
