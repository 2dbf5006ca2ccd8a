# Made by Alidade: Uni-Agent's runner asks Alidade to play the session's
# episode; Alidade posts the reward to the session's own address.
import asyncio, json, os, urllib.request

def _ask(body):
    ask = urllib.request.Request(os.environ["RLLM_UI_URL"] + "/play", json.dumps(body, default=str).encode(),
                                 {"Content-Type": "application/json", "X-API-Key": os.environ["RLLM_API_KEY"]})
    with urllib.request.urlopen(ask, timeout=7200) as answer:
        return json.load(answer)

async def run(*, session, raw_prompt=None, tools_kwargs=None, sample_index=None, model_name=None, **_):
    body = {"task": (tools_kwargs or {}).get("task") or {}, "base_url": session.base_url, "model": model_name or "policy",
            "session_uid": session.session_id, "reward_info_url": session.reward_info_url, "sample_index": sample_index}
    return await asyncio.to_thread(_ask, body)
