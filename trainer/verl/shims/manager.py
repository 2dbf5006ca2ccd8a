

from verl.experimental.reward_loop.reward_manager.dapo import DAPORewardManager


class AlidadeRewardManager(DAPORewardManager):
    """DAPO's manager, which hands the agent's fields to the reward function as the naive one does."""

    async def run_single(self, data):
        rows = data.non_tensor_batch
        for info, fields in zip(rows["extra_info"], rows.get("tool_extra_fields", [])):
            info.update({k: v for k, v in fields.items() if k.startswith("wb_")})
        return await super().run_single(data)
