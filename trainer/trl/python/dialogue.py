"""Conversations as tokens: which of them the model wrote, how a tool's answer
is put between two of its turns, and what a turn asks for."""

import json
import re


def tokens(tokenizer, messages, tools, template=None, generation=False):
    return tokenizer.apply_chat_template(
        messages, tools=tools or None, chat_template=template, add_generation_prompt=generation, tokenize=True, return_dict=False
    )


def for_template(message):
    """A chat message as templates want it: arguments as an object."""
    out = {"role": message["role"], "content": message.get("content") or ""}
    if message.get("tool_calls"):
        calls = []
        for call in message["tool_calls"]:
            function = call["function"]
            arguments = function["arguments"]
            if isinstance(arguments, str):
                try:
                    arguments = json.loads(arguments)
                except ValueError:
                    pass
            calls.append({"type": "function", "function": {"name": function["name"], "arguments": arguments}})
        out["tool_calls"] = calls
    return out


def labelled(tokenizer, messages, tools, limit, template=None):
    """Tokens and labels of a conversation: only what the assistant wrote, each
    turn up to its end token, is to be learned. The conversation is cut at limit
    tokens. None when the template does not keep earlier messages as they are."""
    messages = [for_template(m) for m in messages]
    eos = tokenizer.eos_token_id
    ids, labels = [], []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = tokens(tokenizer, messages[:i], tools, template, generation=True)
        after = tokens(tokenizer, messages[: i + 1], tools, template)
        if after[: len(before)] != before or before[: len(ids)] != ids:
            return None
        turn = after[len(before) :]
        if eos in turn:
            turn = turn[: len(turn) - turn[::-1].index(eos)]
        labels += [-100] * (len(before) - len(ids)) + turn
        ids = before + turn
        if len(ids) >= limit:
            break
    return ids[:limit], labels[:limit]


def suffix(tokenizer, answers, tools, template=None):
    """Tokens between a turn of the model and its next one: the messages that
    answer it, and the header of the next turn."""
    call = {"type": "function", "function": {"name": "dummy", "arguments": {}}}
    first = {"role": "assistant", "content": "x"}
    if answers[0]["role"] == "tool":
        first = {"role": "assistant", "content": "", "tool_calls": [call]}
    start = [{"role": "user", "content": "x"}, first]
    head = tokens(tokenizer, start, tools, template)
    full = tokens(tokenizer, start + answers, tools, template, generation=True)
    eos = tokenizer.eos_token_id
    if eos in head:  # some templates put a newline behind the end of a turn
        head = head[: len(head) - head[::-1].index(eos)]
    if full[: len(head)] != head:
        raise ValueError("the chat template changes earlier messages: it cannot be trained over several turns")
    return full[len(head) :]


CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.S)


class Turn:
    """What one turn of the model asks for."""

    def __init__(self, text, calls):
        self.text = text  # as written
        self.calls = calls  # [(name, arguments)], arguments an object or a text
        self.think = text.split("<tool_call>")[0].strip()

    def message(self, form, number):
        if form == "react" or not self.calls:
            return {"role": "assistant", "content": self.text}
        made = []
        for k, (name, arguments) in enumerate(self.calls):
            body = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            made.append({"id": f"call_{number}_{k}", "type": "function", "function": {"name": name, "arguments": body}})
        return {"role": "assistant", "content": self.think, "tool_calls": made}


def read_turn(text, parsed):
    """Reads a turn: the calls that the tokenizer's own parser has found, else
    those between tool_call tags. A call that is no JSON keeps its text, so that
    the environment can say what is wrong with it."""
    calls = []
    for call in (parsed or {}).get("tool_calls") or []:
        function = call.get("function") or {}
        calls.append((str(function.get("name", "")), function.get("arguments") or {}))
    if calls:
        return Turn(text, calls)
    for body in CALL.findall(text):
        try:
            call = json.loads(body)
            calls.append((str(call["name"]), call["arguments"]))
        except (ValueError, KeyError, TypeError):
            calls.append(("", body.strip()))
    return Turn(text, calls)
