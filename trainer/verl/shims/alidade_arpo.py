"""The tools of Alidade's environment for ARPO's rollouts. Generated.

ARPO knows a tool by a tag in the text, with free text between: here the tag
tool_call, with the name and arguments as JSON, as the prompt tells the policy.
Calls are look-ups, each an episode of its own.
"""
import json
import random

from alidade_client import call, open_episode
from verl.workers.rollout.tools.base_tool import BaseTool

TASK = "@TASK@"


class AlidadeTool(BaseTool):
    def __init__(self, **params):
        pass

    @property
    def name(self):
        return "travel"

    @property
    def trigger_tag(self):
        return "tool_call"

    def execute(self, content, **kwargs):
        try:
            wanted = json.loads(content)
            name, arguments = wanted["name"], wanted.get("arguments") or {}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            return f"Error: the call is not JSON with name and arguments: {e}"
        episode, _ = open_episode(TASK, "train", random.getrandbits(28))
        answer = call("POST", f"/env/episodes/{episode}/call", {"name": name, "arguments": arguments, "index": 0})
        call("DELETE", f"/env/episodes/{episode}")
        return answer["text"]
