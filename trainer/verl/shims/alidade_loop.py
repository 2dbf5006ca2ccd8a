"""An agent whose over-long rollouts are left out of the loss. Generated.

They stay in their group's statistics: every aggregation of verl leaves out
sequences whose mask is empty.
"""
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop

MAX_TURNS = @MAX_TURNS@


class AlidadeAgentLoop(ToolAgentLoop):
    async def run(self, sampling_params, **kwargs):
        output = await super().run(sampling_params, **kwargs)
        limit = len(output.response_ids) >= self.response_length
        # A tool result that does not fit ends the rollout after the call.
        called = "</tool_call>" in self.tokenizer.decode(output.response_ids[-8:]) and output.num_turns < 2 * MAX_TURNS
        if limit or called:
            output.response_mask = [0] * len(output.response_mask)
            output.extra_fields["wb_overlong"] = True
        return output
