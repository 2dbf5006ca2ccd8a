"""Episodes of Alidade's environment server, as environments of TRL.

Standard library only. Requests are repeated while the server is busy or the
connection breaks, which is safe: calls are numbered, and a number that was
answered is answered the same way again. An episode that is lost makes its
rollout invalid: it has no reward, which is not a reward of 0.
"""

import http.client
import inspect
import json
import os
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor


class Refused(Exception):
    """The server refused a request for good."""


class Client:
    """Safe for many threads; each keeps a connection of its own."""

    def __init__(self, url, token, patience=120.0, timeout=60.0, workers=64):
        self.url, self.token, self.patience, self.timeout = url, token, patience, timeout
        self.local = threading.local()
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="environment")

    def post(self, path, body):
        """Posts until there is an answer, for as long as patience lasts."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + self.token}
        end, pause = time.monotonic() + self.patience, 0.05
        while True:
            try:
                if getattr(self.local, "connection", None) is None:
                    parts = urllib.parse.urlsplit(self.url)
                    self.local.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
                self.local.connection.request("POST", path, data, headers)
                answer = self.local.connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as err:
                self.local.connection = None
                if time.monotonic() > end:
                    raise Refused(f"the environment server does not answer: {err}") from err
            else:
                if answer.status < 300:
                    return json.loads(text)
                if answer.status not in (429, 503) or time.monotonic() > end:
                    raise Refused(f"{path}: {answer.status} {text[:300].decode(errors='replace')}")
            time.sleep(pause)
            pause = min(pause * 2, 5.0)


class Episode:
    """One rollout. What begins with an underscore is not a tool."""

    client = None  # Client, set once for the process
    steps = 1  # RL steps of the run, for staged rewards
    max_turns = 0  # of an episode
    _shape = None  # function of an episode: what is added to its reward

    def __init__(self):
        self._clear({})

    def _clear(self, row):
        self._row = row
        self._id = None
        self._failed = None  # why the rollout is invalid
        self._calls = 0
        self._done = False
        self._context = False  # the environment's context budget is spent
        self._length = 0  # tokens of the completion
        self._spans = []
        self._scoring = None
        self._opening = None
        self._score = None
        self._overlong = False
        self._extra = 0.0  # part of the reward that the trainer adds

    def reset(self, **row):
        """Begins an episode for a row of the data set; the answer is not waited for."""
        self._clear(row)
        if row.get("_phase") == "spare":
            self._failed = "played by another process"
            return
        self._opening = self.client.pool.submit(self._open)

    def _open(self):
        row = self._row
        body = {
            "task_id": row["task_id"], "split": row["split"], "seed": int(row.get("_seed", 0)),
            "group_id": row.get("_group", ""), "rollout_index": int(row.get("_rollout", 0)), "step": int(row.get("_step", 0)),
            "phase": row.get("_phase", "rl"), "policy": "policy", "mode": row.get("_mode", "sampled"),
        }  # fmt: skip
        try:
            opened = self.client.post("/env/episodes", body)
            self._id, self.max_turns = opened["episode_id"], opened["max_turns"]
        except Refused as err:
            self._failed = str(err)

    def _ready(self):
        if self._opening is not None:
            self._opening.result()
        return self._failed is None and self._id is not None

    def _call(self, name, arguments, think="", tokens=0):
        """Calls a tool and returns its text."""
        if not self._ready() or self._done:
            return ""
        body = {"name": name, "arguments": arguments, "index": self._calls, "think": think[:20000], "tokens": tokens}
        try:
            answer = self.client.post(f"/env/episodes/{self._id}/call", body)
        except Refused as err:
            self._failed, self._done = str(err), True
            return ""
        self._calls += 1
        self._done = answer["done"]
        self._context = answer["truncated"] and self._calls < self.max_turns
        return answer["text"]

    def _finish(self, final_text, messages=None, overlong=False):
        """Hands in the answer; the score is not waited for."""
        self._overlong = overlong
        self._scoring = self.client.pool.submit(self._settle, final_text, messages, overlong)

    def _settle(self, final_text, messages, overlong):
        if not self._ready():
            return
        body = {"final_text": final_text, "progress": max(0.0, min(1.0, (self._row.get("_step", 1) - 1) / max(1, self.steps)))}
        if messages is not None:
            body["messages"] = messages
        if overlong:
            body["end"] = "context"
        try:
            self._score = self.client.post(f"/env/episodes/{self._id}/score", body)
        except Refused as err:
            self._failed = str(err)

    def get_reward(self):
        """The rollout's reward; None when the rollout failed outside the policy."""
        if self._scoring is None:
            self._finish("")
        self._scoring.result()
        if self._failed is not None or self._score is None:
            return None
        self._extra = self._shape(self) if self._shape else 0.0
        return self._score["score"] + self._extra


def environment_class(tools, client, steps, shape):
    """Makes the environment's class: a method for each tool, with the signature
    and the docstring that TRL reads schemas from."""
    members = {"client": client, "steps": steps, "_shape": staticmethod(shape) if shape else None}
    for tool in tools:
        spec = tool["function"]
        members[spec["name"]] = _method(spec)
    return type("TravelEnvironment", (Episode,), members)


def _method(spec):
    name, properties = spec["name"], spec["parameters"]["properties"]

    def method(self, **arguments):
        return self._call(name, arguments)

    order = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    order += [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str) for p in properties]
    method.__name__ = method.__qualname__ = name
    method.__signature__ = inspect.Signature(order, return_annotation=str)
    method.__annotations__ = {**{p: str for p in properties}, "return": str}
    lines = [spec["description"], "", "Args:"]
    for p, about in properties.items():
        lines.append(f"    {p}: {about.get('description') or p}")
    lines += ["", "Returns:", "    What the tool found."]
    method.__doc__ = "\n".join(lines)
    return method


def connect(job):
    """The client of a job's environment server."""
    return Client(job["env"]["url"], os.environ[job["env"]["token_env"]])
