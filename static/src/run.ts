// One run: its charts, where it stands, and the tail of its log.

import { one, readJSON } from "./dom";
import { group } from "./format";
import type { LiveRun } from "./live";
import type { ChartConfig } from "./panels";
import { Panels } from "./panels";
import { refreshSoon } from "./region";
import { moveRule } from "./rule";

export function start(root: HTMLElement): void {
  const config = readJSON<ChartConfig>("chart-config");
  if (!config) return;
  const id = config.runs?.[0]?.id;
  const panels = new Panels(config);
  panels.also((f) => {
    for (const r of f.runs) if (r.id === id) moved(root, r);
    if (f.evaluations.length > 0 || f.alerts.length > 0) refreshSoon();
  });
  panels.start(root);
  followLog();
  if (config.active) window.setInterval(refreshSoon, 10_000);
}

let phase: string | undefined;

function moved(root: HTMLElement, r: LiveRun): void {
  const step = one('[data-fact="step"] [data-value]', root);
  if (step) step.textContent = group(r.step);
  const rule = one<SVGElement>('[data-rule="run"]', root);
  if (rule) moveRule(rule, r.step, r.total);
  if (phase !== undefined && phase !== r.phase) refreshSoon();
  phase = r.phase;
}

const every = 2000;

// followLog reads the tail again while the run writes, and stays at the end only if the reader is there.
function followLog(): void {
  const log = one<HTMLPreElement>("#log-text");
  const address = log?.dataset.log;
  if (!log || !address) return;
  log.scrollTop = log.scrollHeight;
  if (log.dataset.follow !== "true") return;
  const read = async (): Promise<void> => {
    if (document.hidden) return;
    const marked = getSelection();
    if (marked && String(marked) !== "" && marked.anchorNode && log.contains(marked.anchorNode)) return;
    try {
      const answer = await fetch(address + "&shown=1", { credentials: "same-origin" });
      if (!answer.ok) return;
      const text = await answer.text();
      if (text === log.textContent) return;
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
      log.textContent = text;
      log.hidden = text === "";
      one("#log-empty")?.toggleAttribute("hidden", text !== "");
      if (atEnd) log.scrollTop = log.scrollHeight;
    } catch {
      // the live line says that the server is away
    }
  };
  window.setInterval(() => void read(), every);
}
