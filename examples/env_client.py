#!/usr/bin/env python3
"""A client of Alidade's environment server in Python, standard library only.

    from env_client import Environment
    env = Environment("http://127.0.0.1:7730", token)      # or "unix:/run/env.sock"
    with env.episode("0", split="train", seed=1, rollout_index=3) as ep:
        answer = ep.call("SearchCity", {"state": "Ohio"})   # answer["text"] goes to the policy
        result = ep.score(final_text)                       # result["score"], result["components"]

Requests are repeated when the server is busy (429) or the connection breaks.
That is safe: calls are numbered, and a number that was answered is answered
the same way again. An episode that the server no longer knows raises Lost:
leave that rollout out of training, it is not a reward of 0.

Run as a program it plays one episode that looks around and gives up, or
answers with a plan from a file:

    python3 env_client.py --url http://127.0.0.1:7730 --token T --task 0 --split train
"""

import argparse
import http.client
import json
import os
import socket
import sys
import threading
import time
import urllib.parse


class Refused(Exception):
    """The request is wrong; fields say which value, and what is allowed."""

    def __init__(self, status, error):
        super().__init__(f"{status}: {error.get('message', '')}")
        self.status = status
        self.fields = error.get("fields", [])
        self.expected_index = error.get("expected_index")


class Lost(Refused):
    """The episode is gone: the rollout failed, whatever the policy did."""


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Environment:
    """Safe for many threads; each keeps a connection of its own."""

    def __init__(self, url, token="", timeout=60.0, patience=120.0):
        self.url, self.token, self.timeout, self.patience = url, token, timeout, patience
        self.local = threading.local()

    def connect(self):
        if self.url.startswith("unix:"):
            return UnixConnection(self.url[len("unix:"):], self.timeout)
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port, timeout=self.timeout)

    def request(self, method, path, body=None):
        """Sends a request until it is answered, for as long as patience lasts."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        data = None if body is None else json.dumps(body).encode()
        end, pause = time.monotonic() + self.patience, 0.1
        while True:
            try:
                if getattr(self.local, "connection", None) is None:
                    self.local.connection = self.connect()
                self.local.connection.request(method, path, data, headers)
                response = self.local.connection.getresponse()
                answer = json.loads(response.read())
            except (OSError, http.client.HTTPException) as broken:
                self.close()
                if time.monotonic() + pause > end:
                    raise
                print(f"environment: {broken!r}, trying again", file=sys.stderr)
            else:
                if response.status < 300:
                    return answer
                error = answer.get("error", {})
                if response.status not in (429, 503) or time.monotonic() + pause > end:
                    raise (Lost if response.status == 404 else Refused)(response.status, error)
                pause = max(pause, error.get("retry_after_s", 0))
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def close(self):
        """Closes this thread's connection."""
        if getattr(self.local, "connection", None) is not None:
            self.local.connection.close()
            self.local.connection = None

    def tasks(self, split="", offset=0, limit=100):
        query = {"offset": offset, "limit": limit}
        if split:
            query["split"] = split
        return self.request("GET", "/env/tasks?" + urllib.parse.urlencode(query))

    def tools(self):
        return self.request("GET", "/env/tools")["tools"]

    def stats(self):
        return self.request("GET", "/env/stats")

    def batch(self, operations):
        """operations are {"op": …, "episode_id": …, "body": {…}}; replies come in their order."""
        return self.request("POST", "/env/batch", {"operations": operations})["results"]

    def episode(self, task_id, **more):
        return Episode(self, self.request("POST", "/env/episodes", {"task_id": task_id, **more}))


class Episode:
    """One interaction. Leaving the with block deletes it."""

    def __init__(self, env, made):
        self.env, self.id, self.prompt, self.tools = env, made["episode_id"], made["prompt"], made["tools"]
        self.max_turns, self.path, self.index, self.done = made["max_turns"], "/env/episodes/" + made["episode_id"], 0, False

    def call(self, name, arguments, think="", tokens=0):
        body = {"name": name, "arguments": arguments, "index": self.index}
        if think:
            body["think"] = think
        if tokens:
            body["tokens"] = tokens
        answer = self.env.request("POST", self.path + "/call", body)
        self.index, self.done = self.index + 1, answer["done"]
        return answer

    def score(self, final_text="", messages=None, end="", progress=0.0):
        body = {"final_text": final_text, "progress": progress}
        if messages is not None:
            body["messages"] = messages
        if end:
            body["end"] = end
        return self.env.request("POST", self.path + "/score", body)

    def trajectory(self):
        return self.env.request("GET", self.path + "/trajectory")

    def delete(self):
        return self.env.request("DELETE", self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()


def look_around(ep):
    """Calls each tool once with what the schema asks for, filled in badly."""
    for tool in ep.tools:
        if ep.done:
            return
        function = tool["function"]
        arguments = {name: "driving" if name == "mode" else "Nowhere" for name in function["parameters"]["properties"]}
        answer = ep.call(function["name"], arguments, think="What is there?")
        print(f"{answer['index']} {function['name']}: {answer['error_kind'] or 'hits'}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="http://host:port or unix:/path")
    parser.add_argument("--token", default=os.environ.get("ALIDADE_ENV_TOKEN", ""))
    parser.add_argument("--task", default="", help="id of a task; the first of the split unless set")
    parser.add_argument("--split", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", help="file with the plan to answer with")
    args = parser.parse_args()

    env = Environment(args.url, args.token)
    task = env.tasks(args.split, limit=1)["tasks"][0]
    with env.episode(args.task or task["task_id"], split=args.split or task["split"], seed=args.seed) as ep:
        look_around(ep)
        text = open(args.plan, encoding="utf-8").read() if args.plan else "I do not know."
        result = ep.score(text)
    json.dump({k: result[k] for k in ("score", "components", "success", "end", "format_error", "metrics")}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
