"""Submits a job to a Ray cluster and follows it to its end. Generated.

Ends with 0 only when the job succeeded; a signal stops the job first.
"""
import json
import os
import signal
import sys
import time

from ray.job_submission import JobStatus, JobSubmissionClient

spec = json.load(open(sys.argv[1]))
env = dict(spec["env"])
if spec["secret"] in os.environ:
    env[spec["secret"]] = os.environ[spec["secret"]]
client = JobSubmissionClient(spec["address"])
job, stopping = None, False


def stop(signum, frame):
    global stopping
    stopping = True
    if job:
        client.stop_job(job)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
job = client.submit_job(entrypoint=spec["entrypoint"], submission_id=spec["id"], runtime_env={"env_vars": env})
print(f"alidade: job {job} submitted to {spec['address']}", flush=True)
if stopping:
    client.stop_job(job)
shown, failures = 0, 0
while True:
    try:
        status, text, failures = client.get_job_status(job), client.get_job_logs(job), 0
    except Exception as e:  # the head may be busy; its job goes on
        failures += 1
        if failures > 60:
            sys.exit(f"alidade: the job server does not answer: {e}")
        time.sleep(5)
        continue
    sys.stdout.write(text[shown:])
    sys.stdout.flush()
    shown = len(text)
    if status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED):
        print(f"alidade: job {job} ended: {status}", flush=True)
        sys.exit({JobStatus.SUCCEEDED: 0, JobStatus.STOPPED: 143}.get(status, 1))
    time.sleep(5)
