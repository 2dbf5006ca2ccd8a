"""Plays episodes with env.py as TRL's trainer does; prints what came out."""

import inspect
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import env  # noqa: E402

client = env.Client(sys.argv[2], os.environ["TOKEN"], patience=3)
tools = json.load(open(sys.argv[3]))
shape = (lambda e: -0.25 if e._overlong else 0.0)
made = env.environment_class(tools, client, steps=10, shape=shape)

# What TRL takes for tools: public functions of the class beside these two.
names = [n for n, _ in inspect.getmembers(made, inspect.isfunction) if not n.startswith("_") and n not in ("reset", "get_reward")]
documented = all("Args:" in getattr(made, n).__doc__ and inspect.signature(getattr(made, n)).parameters for n in names)

plan = json.dumps([{"day": d, "current_city": "-", "transportation": "-", "breakfast": "-", "attraction": "-", "lunch": "-", "dinner": "-", "accommodation": "-"} for d in (1, 2, 3)])
rollouts = [made() for _ in range(8)]
for i, e in enumerate(rollouts):
    e.reset(task_id="0", split="train", prompt=[], _group="rl-1-0", _rollout=i, _step=1, _seed=1, _phase="rl")
texts = [client.pool.submit(e._call, "SearchCity", {"state": "Ohio"}) for e in rollouts]
texts = [t.result() for t in texts]
unknown = rollouts[0].SearchCity(state="Nowhere")
client.post(f"/env/episodes/{rollouts[2]._id}/score", {"final_text": ""})  # somebody else scored it: the rollout is lost
for i, e in enumerate(rollouts):
    e._finish(plan if i != 1 else "no plan", [{"role": "user", "content": "x"}, {"role": "assistant", "content": plan}], overlong=i == 3)
rewards = [e.get_reward() for e in rollouts]
spare = made()
spare.reset(task_id="0", split="train", _phase="spare")
print(json.dumps({
    "tools": names, "documented": documented, "texts": texts, "unknown": unknown, "rewards": rewards, "spare": spare.get_reward(), "failed": rollouts[2]._failed,
}))
