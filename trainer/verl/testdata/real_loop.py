"""One rollout through a real release of verl, with a scripted policy in place
of the inference engine: its own agent loop, tool parser, tool registry and
reward manager, and our generated files. Prints what a trainer would get."""
import asyncio
import json
import os
import sys

import numpy as np
import torch
import transformers

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

shims, config_dir, overrides = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n{%- endif %}"
    "{%- for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|pad|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    fast.add_tokens(["<tool_call>", "</tool_call>"])
    fast.chat_template = TEMPLATE
    return fast


tok = tokenizer()
lines = ['<think>Look.</think>\n<tool_call>\n{"name": "SearchCity", "arguments": {"state": "%s"}}\n</tool_call><|im_end|>' % s for s in ("Ohio", "Nevada")]
lines.append(os.environ["PLAN"] + "<|im_end|>")


class Policy:
    def __init__(self):
        self.turn, self.prompts = 0, []

    async def generate(self, *, prompt_ids, **kwargs):
        self.prompts.append(tok.decode(prompt_ids))
        from verl.workers.rollout.replica import TokenOutput
        ids = tok.encode(lines[self.turn], add_special_tokens=False)
        self.turn += 1
        return TokenOutput(token_ids=ids, log_probs=[-0.1] * len(ids))


with initialize_config_dir(config_dir=config_dir, version_base=None):
    config = compose(config_name="ppo_trainer", overrides=overrides)
OmegaConf.set_struct(config, False)


class Wrap:
    def __init__(self, config):
        self.config = config


async def main():
    import hydra
    from verl import DataProto
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    import verl.experimental.agent_loop.tool_agent_loop  # noqa: F401  registers tool_agent
    name = config.actor_rollout_ref.rollout.agent.default_agent_loop
    path = config.actor_rollout_ref.rollout.agent.agent_loop_config_path
    if path:
        for one in OmegaConf.load(path):
            _agent_loop_registry[one.name] = one
    policy = Policy()
    extra = {"dataset_cls": None, "data_config": Wrap(config.data)} if "V06" not in os.environ else {}
    try:  # from 0.8 on the worker loads the tools and hands them over
        from types import SimpleNamespace
        from verl.tools.tool_registry import load_all_tools
        turns = config.actor_rollout_ref.rollout.multi_turn
        extra["tools"] = SimpleNamespace(tools=load_all_tools(turns.tool_config_path, turns.function_tool_path))
    except ImportError:
        pass
    loop = hydra.utils.instantiate(config=_agent_loop_registry[name], trainer_config=Wrap(config), server_manager=policy, tokenizer=tok, processor=None, **extra)
    kwargs_tools = {t: {"create_kwargs": {"task_id": "0", "split": "train"}} for t in ("SearchCity", "SearchFlight")}
    info = {"task_id": "0", "split": "train", "index": 0, "tools_kwargs": kwargs_tools}
    out = await loop.run({}, raw_prompt=[{"role": "system", "content": "Plan."}, {"role": "user", "content": "Trip."}], tools_kwargs=kwargs_tools, extra_info=info)
    fields = dict(out.extra_fields)
    ids = torch.tensor([out.response_ids])
    batch = DataProto.from_dict(tensors={"responses": ids, "prompts": torch.tensor([out.prompt_ids]), "attention_mask": torch.ones(1, len(out.prompt_ids) + len(out.response_ids), dtype=torch.long)},
                                non_tensors={"data_source": np.array(["alidade/travel"]), "reward_model": np.array([{"ground_truth": "h"}], dtype=object),
                                             "extra_info": np.array([info], dtype=object), "tool_extra_fields": np.array([fields], dtype=object), "__num_turns__": np.array([out.num_turns])})
    reward = await score(batch)
    print(json.dumps({"reward": float(reward["reward_score"]), **{k: v for k, v in reward["reward_extra_info"].items() if isinstance(v, (str, float, int))},
                      "num_turns": out.num_turns, "mask": sum(out.response_mask), "tokens": len(out.response_mask), "schemas": policy.prompts[0].count('"type": "function"')}, default=str))


async def score(batch):
    if "V06" in os.environ:
        from verl.experimental.reward.reward_loop import get_reward_loop_manager_cls
        from alidade_reward import compute_score
        cls = get_reward_loop_manager_cls(config.reward_model.reward_manager)
        cls.init_class(config, tok)
        manager = cls(config, tok, compute_score)
    else:
        from verl.trainer.ppo.reward import load_reward_manager
        manager = load_reward_manager(config, tok)
    return await manager.run_single(batch)


asyncio.run(main())
