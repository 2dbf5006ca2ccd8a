"""Holds what SFT is given against what the loop puts together."""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import dialogue  # noqa: E402
import tiny  # noqa: E402

folder = sys.argv[2]
TOOLS = [{"type": "function", "function": {"name": "SearchCity", "description": "cities", "parameters": {"type": "object", "properties": {"state": {"type": "string", "description": "state"}}, "required": ["state"]}}}]
CALL = {"id": "call_0", "type": "function", "function": {"name": "SearchCity", "arguments": '{"state": "Ohio"}'}}
native = [
    {"role": "system", "content": "You plan trips."},
    {"role": "user", "content": "To Ohio, please."},
    {"role": "assistant", "content": "<think>which cities?</think>", "tool_calls": [CALL]},
    {"role": "tool", "content": "Akron, Dayton", "tool_call_id": "call_0"},
    {"role": "assistant", "content": "<think>done</think>\n[1, 2]"},
]
text = [
    native[0], native[1],
    {"role": "assistant", "content": '<think>which cities?</think>\n<tool_call>{"name": "SearchCity", "arguments": {"state": "Ohio"}}</tool_call>'},
    {"role": "user", "content": "<tool_response>\nAkron, Dayton</tool_response>"},
    {"role": "assistant", "content": "<think>done</think>\n<answer>[1, 2]</answer>"},
]
path = os.path.join(folder, "traces.jsonl")
with open(path, "w") as f:
    for messages in (native, text):
        f.write(json.dumps({"messages": messages}) + "\n")
tiny.make(os.path.join(folder, "model"), {"traces": path}, 1)

from common import teach_parsing  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from trl.chat_template_utils import is_chat_template_prefix_preserving, parse_response, supports_tool_calling  # noqa: E402

tokenizer = AutoTokenizer.from_pretrained(os.path.join(folder, "model"))
teach_parsing(tokenizer)
assert supports_tool_calling(tokenizer) and is_chat_template_prefix_preserving(tokenizer)
for form, messages, tools in (("tools", native, TOOLS), ("react", text, [])):
    ids, labels = dialogue.labelled(tokenizer, messages, tools, 10_000)
    learned = tokenizer.decode([x for x in labels if x != -100])
    assert learned.count("<|im_end|>") == 2 and "Akron" not in learned and "Ohio, please" not in learned, learned
    # The loop: prompt, a turn as the model wrote it, the tool's answer, the next turn.
    prompt = dialogue.tokens(tokenizer, [dialogue.for_template(m) for m in messages[:2]], tools, generation=True)
    assert ids[: len(prompt)] == prompt
    end = ids.index(tokenizer.eos_token_id, len(prompt)) + 1
    first = ids[len(prompt) : end]
    parsed = parse_response(tokenizer, first, prefix=prompt, tools=tools) if form == "tools" else None
    turn = dialogue.read_turn(tokenizer.decode(first, skip_special_tokens=True), parsed)
    assert turn.calls == [("SearchCity", {"state": "Ohio"})], (form, turn.calls, turn.text)
    answer = {k: v for k, v in messages[3].items() if k != "tool_call_id"}
    between = dialogue.suffix(tokenizer, [answer], tools)
    assert ids[end : end + len(between)] == between, (form, tokenizer.decode(ids[end : end + 40]), tokenizer.decode(between))
    last = dialogue.read_turn(tokenizer.decode(ids[end + len(between) :], skip_special_tokens=True), None)
    assert not last.calls and "[1, 2]" in last.text
    cut, _ = dialogue.labelled(tokenizer, messages, tools, 40)
    assert cut == ids[:40]
for broken in ("<tool_call>{not json}</tool_call>", '<tool_call>{"name": 1}</tool_call>', "<tool_call>[]</tool_call>"):
    assert dialogue.read_turn(broken, None).calls[0][0] == "", broken
assert dialogue.read_turn("<tool_call> never closed", None).calls == []
print("all well")
