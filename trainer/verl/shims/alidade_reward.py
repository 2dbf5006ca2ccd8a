"""The reward of Alidade's environment for verl. Generated."""
import json
import random
import re

from alidade_client import call, open_episode, progress

TOOL_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.S)
SCORES = ("cs_micro", "cs_macro", "hard_micro", "hard_macro", "delivery", "tool_calls", "tool_errors", "injected", "format_error")


def replay(text, info):
    """Plays the calls of a trajectory in an episode, for versions whose tools do not know it."""
    episode, group = open_episode(info["task_id"], info["split"], random.getrandbits(28), clean=True)
    index = 0
    for said in TOOL_CALL.findall(text):
        try:
            wanted = json.loads(said)
            body = {"name": wanted["name"], "arguments": wanted.get("arguments") or {}, "index": index}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the trainer's parser dropped it as well
        if call("POST", f"/env/episodes/{episode}/call", body)["error_kind"] != "over":
            index += 1
    return episode, group


def final_text(text):
    """What the policy wrote last: tool results are never taken for an answer."""
    text = re.split("</tool_response>|</result>", text)[-1]
    text = re.sub(r"^\s*assistant\s*\n", "", text)
    return "" if "<tool_call>" in text else text


def compute_score(data_source=None, solution_str="", ground_truth=None, extra_info=None, **kwargs):
    info = extra_info or {}
    if info.get("wb_lost"):
        raise RuntimeError(info["wb_lost"])
    episode, group = info.get("wb_episode"), info.get("wb_group")
    if not episode:
        episode, group = replay(solution_str, info)
    result = call("POST", f"/env/episodes/{episode}/score", {"final_text": final_text(solution_str), "progress": progress()[1]})
    score = {"score": float(result["score"]), "acc": float(result["success"]), "wb_group": group, "wb_episode": episode,
             "wb_components": json.dumps(result["components"])}
    for name in SCORES:
        score["wb_" + name] = float(result["metrics"].get(name, 0.0))
    return score
