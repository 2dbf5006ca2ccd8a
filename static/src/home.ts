// Home: rows move in place with the frames; what else changed is read again from the server.

import { all, one, readJSON } from "./dom";
import type { Frame, LiveRun } from "./live";
import { Live } from "./live";
import { onKey } from "./keys";
import { refreshSoon } from "./region";
import { moveRule } from "./rule";

interface LiveConfig {
  study: number;
  metrics?: string[];
}

export function start(root: HTMLElement): void {
  onKey("K", (e) => moveInQueue(e, root, "up"));
  onKey("J", (e) => moveInQueue(e, root, "down"));
  const config = readJSON<LiveConfig>("live-config");
  if (!config) return;
  const live = new Live({
    frame: (f) => frame(root, f),
    stale: refreshSoon,
  });
  live.want({ study: config.study, metrics: config.metrics ?? [] });
  // what has no event of its own: devices and the time left
  window.setInterval(refreshSoon, 15_000);
}

// moveInQueue presses the button of the row that the keys are at.
function moveInQueue(e: KeyboardEvent, root: HTMLElement, way: string): void {
  const button = one<HTMLElement>(`.queue-rows tr.current [data-move="${way}"] button`, root);
  if (!button) return;
  e.preventDefault();
  button.click();
}

const states = new Map<number, string>();

function frame(root: HTMLElement, f: Frame): void {
  let changed = f.alerts.length > 0 || f.n > 0;
  for (const r of f.runs) {
    if (r.id === 0) {
      changed = true; // the queue or a study was paused or resumed
      continue;
    }
    const before = states.get(r.id);
    states.set(r.id, r.state);
    const row = one(`tr[data-run="${r.id}"]`, root);
    if (!row) {
      changed ||= before !== r.state;
      continue;
    }
    changed ||= before !== undefined && before !== r.state;
    moveRow(row, r);
  }
  if (changed) refreshSoon();
}

function moveRow(row: HTMLElement, r: LiveRun): void {
  const step = one('[data-cell="step"]', row);
  if (step && r.total > 0) step.textContent = `${r.step} / ${r.total}`;
  for (const rule of all<SVGElement>("[data-rule]", row)) moveRule(rule, r.step, r.total);
}
