"""A small model with the shape of Qwen2, made on the spot from a seed: weights
drawn at random, a tokenizer that learns its pieces from the run's own data, a
chat template with tool calls. It shows that everything works; it knows nothing
until it is fine-tuned."""

import json
import os

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}{{- (tool.function.name if tool.function is defined else tool.name) + '(' + ((tool.function.parameters.properties if tool.function is defined else tool.parameters.properties) | join(', ')) + ')\\n' }}{%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {%- set call = call.function if call.function is defined else call %}
            {{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}{{- call.arguments if call.arguments is string else (call.arguments | tojson) }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

VOCABULARY = 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<answer>", "</answer>"]


def texts(data):
    """What the tokenizer learns its pieces from, in a fixed order."""
    for name in ("train", "traces"):
        path = data.get(name)
        if not path:
            continue
        with open(path) as f:
            for number, line in enumerate(f):
                if number >= 200:
                    break
                row = json.loads(line)
                for message in row.get("messages") or row.get("prompt") or []:
                    yield message.get("content") or ""
                    for call in message.get("tool_calls") or []:
                        yield '{"name": "' + call["function"]["name"] + '", "arguments": ' + call["function"]["arguments"] + "}"


# Shapes other than tiny's own, for measurements: those of Qwen2.5 models. The
# weights are random all the same.
SHAPES = {
    "tiny": {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCABULARY},
    "0.5b": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936},
    "1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936},
}


def make(folder, data, seed, shape="tiny"):
    """Writes model and tokenizer into folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(TAGS), special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    pieces.train_from_iterator(texts(data), trainer)
    pieces.add_tokens(TAGS)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces, bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE, model_max_length=16384
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    config = Qwen2Config(
        **SHAPES[shape], max_position_embeddings=16384, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    torch.random.set_rng_state(state)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    import argparse

    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("folder")
    flags.add_argument("--train", help="JSONL of tasks")
    flags.add_argument("--traces", help="JSONL of traces")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    given = flags.parse_args()
    print(make(given.folder, {"train": given.train, "traces": given.traces}, given.seed, given.shape))
