"""Tools of Alidade's environment for verl's agents. Generated.

Each trajectory has an episode of its own, found by the agent's request id and
kept in its extra fields, which reach the reward function.
"""
import asyncio

from alidade_client import call, open_episode
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import ToolResponse


class AlidadeTool(BaseTool):
    async def execute(self, instance_id, parameters, **kwargs):
        agent = kwargs["agent_data"]
        fields = agent.extra_fields
        try:
            if "wb_episode" not in fields:
                task = agent.tools_kwargs[self.name]["create_kwargs"]
                rollout = int(agent.request_id[:7], 16)
                fields["wb_episode"], fields["wb_group"] = await asyncio.to_thread(open_episode, task["task_id"], task["split"], rollout)
                fields["wb_calls"] = 0
            path = f"/env/episodes/{fields['wb_episode']}/call"
            answer = await asyncio.to_thread(call, "POST", path, {"name": self.name, "arguments": parameters, "index": fields["wb_calls"]})
            fields["wb_calls"] += 1
        except RuntimeError as e:
            fields["wb_lost"] = str(e)  # the reward function stops the run: this is no reward of 0
            raise
        return ToolResponse(text=answer["text"]), 0.0, {}
