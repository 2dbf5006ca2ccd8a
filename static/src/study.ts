// One study: charts by arm, and the table of its runs.

import { one, readJSON } from "./dom";
import type { ChartConfig } from "./panels";
import { Panels } from "./panels";
import { refreshSoon } from "./region";
import { moveRule } from "./rule";
import type { RunTableData } from "./runtable";
import { RunTable } from "./runtable";

export function start(root: HTMLElement): void {
  const config = readJSON<ChartConfig>("chart-config");
  if (!config) return;
  const panels = new Panels(config);
  const data = readJSON<RunTableData>("run-table");
  const table = data && config.runs && config.runs.length > 0 ? new RunTable(data, config.arms ?? []) : null;
  table?.start();

  const steps = new Map<number, [number, number]>();
  for (const r of data?.rows ?? []) steps.set(r.id, [r.step, r.total]);
  panels.also((f) => {
    for (const r of f.runs) if (steps.has(r.id)) steps.set(r.id, [r.step, r.total || (steps.get(r.id)?.[1] ?? 0)]);
    if (f.runs.length > 0) moveStudyRule(root, steps);
    table?.apply(f);
    if (f.evaluations.length > 0 || f.alerts.length > 0) refreshSoon();
  });
  panels.start(root);
  if (config.active) window.setInterval(refreshSoon, 10_000);
}

function moveStudyRule(root: HTMLElement, steps: Map<number, [number, number]>): void {
  const rule = one<SVGElement>('[data-rule="study"]', root);
  if (!rule) return;
  let now = 0;
  let total = 0;
  for (const [a, b] of steps.values()) {
    now += a;
    total += b;
  }
  moveRule(rule, now, total);
}
