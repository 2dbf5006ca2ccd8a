// The charts of a study or a run: which exist, which are in view, and what they draw.

import type { Axis, Line } from "./aggregate";
import { byStep, cumulative, elapsed, lineOf, meanOf, niceStep } from "./aggregate";
import type { Constant, Drawn } from "./chart";
import { Chart } from "./chart";
import type { Series } from "./data";
import { Data } from "./data";
import { all, el, one, query, setQuery, throttle } from "./dom";
import type { MetricInfo } from "./format";
import { count, fixed, group, metricValue, unitOf } from "./format";
import { onKey } from "./keys";
import type { Frame, LiveRun } from "./live";
import { Live } from "./live";
import type { Arm } from "./marks";
import { refreshSoon } from "./region";

export interface ChartRun {
  id: number;
  arm: number;
  seed: string;
  state: string;
  started?: number;
  devices: number;
  rollouts: number;
}

export interface ChartConfig {
  study: number;
  runs: ChartRun[] | null;
  arms: Arm[] | null;
  primary: string;
  side: string[] | null;
  metrics: string[] | null;
  info: Record<string, MetricInfo>;
  active: boolean;
  single: boolean;
  facets?: { label: string }[];
  points: number;
  total: number;
}

type XAxis = "step" | "elapsed" | "hours" | "tokens";

const byNames: Record<XAxis, string> = { step: "step", elapsed: "elapsed time", hours: "device-hours", tokens: "tokens seen" };

const xNames: Record<XAxis, string> = { step: "step", elapsed: "min", hours: "device-hours", tokens: "M tokens" };

// Panel is one figure: a metric, maybe only some of its arms.
interface Panel {
  metric: string;
  arms: Arm[] | null; // null: all
  figure: HTMLElement;
  title: HTMLElement;
  subtitle: HTMLElement;
  source: HTMLElement | null;
  chart: Chart;
  visible: boolean;
  dirty: boolean;
  main: boolean;
  labels: boolean;
}

export class Panels {
  private readonly data: Data;
  private readonly live: Live;
  private readonly panels: Panel[] = [];
  private readonly byFigure = new Map<Element, Panel>();
  private readonly runs: Map<number, ChartRun>;
  private readonly arms: Map<number, Arm>;
  private metrics: string[];
  private x: XAxis;
  private show: "mean" | "runs";
  private smoothing: number;
  private zoomed: [number, number] | null = null;
  private total: number;
  private readonly seen: IntersectionObserver;
  private readonly onFrame: ((f: Frame) => void)[] = [];

  constructor(private readonly config: ChartConfig) {
    this.runs = new Map((config.runs ?? []).map((r) => [r.id, r]));
    this.arms = new Map((config.arms ?? []).map((a) => [a.index, a]));
    this.metrics = config.metrics ?? [];
    this.total = config.total;
    this.x = (["step", "elapsed", "hours", "tokens"] as const).find((x) => x === query("x")) ?? "step";
    this.show = query("show") === "runs" ? "runs" : "mean";
    this.smoothing = Math.min(0.99, Math.max(0, Number(query("smooth")) || 0));
    this.zoomed = readZoom(query("zoom"));
    const address = config.single ? `/api/v1/runs/${[...this.runs.keys()][0] ?? 0}/series` : `/api/v1/studies/${config.study}/series`;
    this.data = new Data(
      address,
      () => [...this.runs.keys()],
      () => config.points,
      (metrics) => this.touched(metrics),
    );
    this.data.exact = this.smoothing > 0;
    if (this.x === "step") this.data.range = this.zoomed;
    this.live = new Live({ frame: (f) => this.frame(f), stale: () => this.stale() });
    this.seen = new IntersectionObserver((entries) => this.scrolled(entries), { rootMargin: "300px" });
    document.addEventListener("theme", () => {
      for (const p of this.panels) p.chart.restyle();
    });
  }

  // also calls fn with every frame, for what is not a chart.
  also(fn: (f: Frame) => void): void {
    this.onFrame.push(fn);
  }

  start(root: HTMLElement): void {
    const primary = one('[data-charts="primary"]', root);
    const side = one('[data-charts="side"]', root);
    if (!primary || !side) return;
    this.buildPrimary(primary);
    const names = this.config.side ?? [];
    for (const m of names) side.append(this.panel(m, null, 118, false, false).figure);
    if (names.length === 0) {
      side.hidden = true;
      primary.className = "span-12";
    }
    this.buildAll(root);
    this.controls(root);
    if (this.config.active) window.setInterval(() => void this.lookForMetrics(root), 8000);
    onKey("f", (e) => this.fullScreen(e));
    onKey("Escape", () => this.zoom(null));
    this.subscribe();
  }

  private info(metric: string): MetricInfo {
    return this.config.info[metric] ?? { label: metric, digits: 3 };
  }

  private buildPrimary(host: HTMLElement): void {
    const arms = this.config.arms ?? [];
    const metric = this.config.primary;
    const facets = this.config.facets ?? [];
    if (facets.length > 1) {
      host.append(this.caption(metric));
      const grid = el("div", { class: "facets" });
      facets.forEach((f, i) => {
        const own = arms.filter((a) => a.facet === i);
        if (own.length > 0) grid.append(this.panel(metric, own, facets.length > 4 ? 220 : 300, true, true, f.label).figure);
      });
      host.append(grid);
      return;
    }
    if (arms.length > 8) {
      host.append(this.caption(metric));
      const grid = el("div", { class: "multiples" });
      for (const a of arms) grid.append(this.panel(metric, [a], 140, true, false, a.label).figure);
      host.append(grid);
      return;
    }
    host.append(this.panel(metric, null, 356, true, true).figure);
  }

  private caption(metric: string): HTMLElement {
    const info = this.info(metric);
    const unit = unitOf(info);
    const what = info.label.toLowerCase() + (unit ? ", " + unit : "");
    return el("div", { class: "facets-head" }, el("b", {}, info.label + " by step"), el("span", {}, `${what}; ${this.show === "runs" ? "each run" : "mean and range over seeds"}; shared axes`));
  }

  private panel(metric: string, arms: Arm[] | null, height: number, main: boolean, labels: boolean, name?: string): Panel {
    const info = this.info(metric);
    const title = el("b", {}, name ?? (main ? info.label + " by step" : info.label));
    const subtitle = el("span", {}, unitOf(info));
    const source = main && !name ? el("p", { class: "source" }) : null;
    const chart = new Chart({
      info,
      height,
      labels,
      xLabel: xNames[this.x],
      sync: "page",
      open: (x, near) => this.open(metric, x, near),
      zoom: (range) => this.zoom(range),
    });
    const figure = el("figure", { class: "chart", "data-metric": metric, tabindex: -1 }, el("figcaption", {}, title, subtitle), chart.node);
    if (source) figure.append(source);
    chart.node.style.height = height + "px";
    const p: Panel = { metric, arms, figure, title, subtitle, source, chart, visible: false, dirty: true, main, labels };
    this.panels.push(p);
    this.byFigure.set(figure, p);
    this.seen.observe(figure);
    return p;
  }

  // buildAll lays out every metric in groups that fold; a chart is made when its group is opened.
  private buildAll(root: HTMLElement): void {
    const box = one(".chart-all", root);
    const host = one('[data-charts="all"]', root);
    if (!box || !host) return;
    box.hidden = this.metrics.length === 0;
    const note = one('[data-note="metrics"]', box);
    if (note) note.textContent = `${count(this.metrics.length, "metric", "metrics")}; only charts in view are drawn`;
    const groups = new Map<string, string[]>();
    for (const m of this.metrics) {
      const cut = m.startsWith("eval/check/") ? 10 : m.indexOf("/");
      const name = cut > 0 ? m.slice(0, cut) : "other";
      groups.set(name, [...(groups.get(name) ?? []), m]);
    }
    for (const [name, members] of groups) {
      const known = host.querySelector<HTMLDetailsElement>(`details[data-group="${CSS.escape(name)}"]`);
      if (known) {
        this.addToGroup(known, members);
        continue;
      }
      const details = el("details", { class: "metric-group", "data-group": name }, el("summary", {}, el("b", {}, groupNames[name] ?? name), el("span", { class: "caption" })), el("div", { class: "multiples" }));
      const order = Object.keys(groupNames);
      const after = [...host.children].find((c) => order.indexOf((c as HTMLElement).dataset.group ?? "") > order.indexOf(name));
      host.insertBefore(details, after ?? null);
      this.addToGroup(details, members);
      details.addEventListener("toggle", () => {
        if (details.open) this.openGroup(details);
      });
    }
    this.filterMetrics(root);
  }

  private addToGroup(details: HTMLDetailsElement, members: string[]): void {
    details.dataset.members = members.join("\n");
    const caption = one(".caption", details);
    if (caption) caption.textContent = members.length === 1 ? "1 metric" : members.length + " metrics";
    if (details.open) this.openGroup(details);
  }

  private openGroup(details: HTMLDetailsElement): void {
    const grid = one(".multiples", details);
    if (!grid) return;
    const there = new Set(all<HTMLElement>("figure", grid).map((f) => f.dataset.metric));
    for (const m of (details.dataset.members ?? "").split("\n")) {
      if (m && !there.has(m)) grid.append(this.panel(m, null, 130, false, false).figure);
    }
    this.filterFigures(details);
  }

  private filterMetrics(root: HTMLElement): void {
    const host = one('[data-charts="all"]', root);
    if (!host) return;
    for (const d of all<HTMLDetailsElement>("details", host)) this.filterFigures(d);
  }

  private filterFigures(details: HTMLDetailsElement): void {
    const text = (one<HTMLInputElement>("#metric-filter")?.value ?? "").trim().toLowerCase();
    const members = (details.dataset.members ?? "").split("\n");
    const fits = (m: string): boolean => (m + " " + this.info(m).label).toLowerCase().includes(text);
    details.hidden = text !== "" && !members.some(fits);
    for (const f of all<HTMLElement>("figure", details)) f.hidden = text !== "" && !fits(f.dataset.metric ?? "");
  }

  private controls(root: HTMLElement): void {
    for (const c of all(".chart-controls")) c.hidden = false;
    this.choice("x", this.x, (v) => {
      this.x = v as XAxis;
      this.zoomed = null;
      setQuery({ x: v === "step" ? null : v, zoom: null });
      this.rebuildAxes();
    });
    this.choice("show", this.show, (v) => {
      this.show = v as "mean" | "runs";
      setQuery({ show: v === "mean" ? null : v });
      this.redrawAll();
    });
    const smooth = one<HTMLSelectElement>('[data-choice-select="smooth"]');
    if (smooth) {
      smooth.value = String(this.smoothing);
      smooth.addEventListener("change", () => {
        this.smoothing = Number(smooth.value);
        setQuery({ smooth: this.smoothing ? smooth.value : null });
        const exact = this.smoothing > 0;
        if (exact !== this.data.exact) {
          this.data.exact = exact;
          this.data.reread();
        }
        this.redrawAll();
      });
    }
    const filter = one<HTMLInputElement>("#metric-filter");
    if (filter) {
      filter.value = query("metrics") ?? "";
      const apply = throttle(120, () => {
        setQuery({ metrics: filter.value || null });
        if (filter.value.trim()) for (const d of all<HTMLDetailsElement>('[data-charts="all"] details')) d.open = true;
        this.filterMetrics(root);
      });
      filter.addEventListener("input", apply);
      if (filter.value) apply();
    }
    const open = query("open") === "all" ? 99 : this.config.single && innerWidth > 760 ? 1 : 0;
    for (const d of all<HTMLDetailsElement>('[data-charts="all"] details').slice(0, open)) d.open = true;
  }

  private choice(name: string, value: string, changed: (v: string) => void): void {
    const host = one(`[data-choice="${name}"]`);
    if (!host) return;
    const press = (v: string): void => {
      for (const b of all<HTMLButtonElement>("button", host)) b.setAttribute("aria-pressed", String(b.value === v));
    };
    press(value);
    host.addEventListener("click", (e) => {
      if (!(e.target instanceof HTMLButtonElement)) return;
      press(e.target.value);
      changed(e.target.value);
    });
  }

  private rebuildAxes(): void {
    this.data.range = null;
    this.data.reread();
    for (const p of this.panels) p.chart.relabel(xNames[this.x]);
    this.subscribe();
    this.redrawAll();
  }

  private async lookForMetrics(root: HTMLElement): Promise<void> {
    if (document.hidden) return;
    try {
      const from = this.config.single ? `/api/v1/runs/${[...this.runs.keys()][0] ?? 0}` : `/api/v1/studies/${this.config.study}/metrics?info=1`;
      const answer = await fetch(from, { credentials: "same-origin" });
      if (!answer.ok) return;
      const body = (await answer.json()) as { metrics: string[]; info?: Record<string, MetricInfo> };
      if (body.metrics.length === this.metrics.length) return;
      Object.assign(this.config.info, body.info ?? {});
      this.metrics = body.metrics;
      this.buildAll(root);
      this.subscribe();
    } catch {
      // the live line says that the server is away
    }
  }

  private scrolled(entries: IntersectionObserverEntry[]): void {
    for (const e of entries) {
      const p = this.byFigure.get(e.target);
      if (p) p.visible = e.isIntersecting;
    }
    this.subscribe();
    this.schedule();
  }

  // subscribe asks for what is in view, and reads what is not held yet.
  private readonly subscribe = throttle(60, () => {
    const want = new Set<string>();
    for (const p of this.panels) if (p.visible) want.add(p.metric);
    if (this.x === "tokens") want.add("rollout/tokens");
    if (this.panels.some((p) => p.visible && p.main && this.baselineFits(p.metric))) for (const b of baselines) if (this.metrics.includes(b)) want.add(b);
    this.data.need([...want]);
    const held = new Set([...want, ...this.data.names()]);
    this.live.want({ study: this.config.study, runs: this.config.single ? [...this.runs.keys()] : undefined, metrics: [...held] });
  });

  private baselineFits(metric: string): boolean {
    return metric.startsWith("eval/success");
  }

  private frame(f: Frame): void {
    for (const r of f.runs) this.runMoved(r);
    const touched = this.data.apply(f);
    if (touched.size > 0) this.touched(touched);
    for (const fn of this.onFrame) fn(f);
  }

  private runMoved(r: LiveRun): void {
    if (r.id === 0) return refreshSoon(); // the study was paused or resumed
    const known = this.runs.get(r.id);
    if (!known) {
      if (r.study !== this.config.study || this.config.single) return;
      this.runs.set(r.id, { id: r.id, arm: r.arm, seed: "", state: r.state, started: r.started, devices: 1, rollouts: 1 });
      refreshSoon();
      return;
    }
    if (known.state !== r.state) refreshSoon();
    known.state = r.state;
    if (r.started) known.started = r.started;
    this.total = Math.max(this.total, r.total);
  }

  private stale(): void {
    this.data.reread();
    refreshSoon();
  }

  private touched(metrics: Set<string>): void {
    for (const p of this.panels) {
      if (metrics.has(p.metric) || (p.main && [...metrics].some((m) => m.startsWith("baseline/"))) || (this.x === "tokens" && metrics.has("rollout/tokens"))) p.dirty = true;
    }
    this.schedule();
  }

  private redrawAll(): void {
    for (const p of this.panels) p.dirty = true;
    this.schedule();
  }

  private frameDue = 0;

  private schedule(): void {
    if (this.frameDue) return;
    this.frameDue = requestAnimationFrame(() => {
      this.frameDue = 0;
      const started = performance.now();
      let fresh = 0;
      for (const p of this.panels) {
        if (!p.visible || !p.dirty) continue;
        // leave the thread to the reader; a new chart costs most, and its own drawing comes after this
        if (performance.now() - started > 12 || fresh === 2) {
          this.schedule();
          return;
        }
        p.dirty = false;
        if (!p.chart.made) fresh++;
        this.drawPanel(p);
      }
    });
  }

  private axis(): Axis {
    const started = new Map<number, number>();
    for (const r of this.runs.values()) started.set(r.id, r.started ?? 0);
    switch (this.x) {
      case "elapsed":
        return elapsed(started, 1 / 60);
      case "hours": {
        const base = elapsed(started, 1 / 3600);
        return { of: (run, step, wall) => base.of(run, step, wall) * (this.runs.get(run)?.devices ?? 1) };
      }
      case "tokens":
        return cumulative(this.data.get("rollout/tokens"), new Map([...this.runs.values()].map((r) => [r.id, r.rollouts / 1e6])));
    }
    return byStep;
  }

  private drawPanel(p: Panel): void {
    const info = this.info(p.metric);
    const series = this.data.get(p.metric);
    if (!series) {
      p.figure.dataset.state = this.data.problem ? "problem" : "loading";
      if (this.data.problem) p.subtitle.textContent = "Not read: " + this.data.problem;
      return;
    }
    const lines = this.lines(p, series);
    const any = lines.some((d) => d.line.x.length > 0);
    p.figure.dataset.state = any ? "" : this.config.active ? "empty" : "idle";
    const constants = p.main && p.labels && this.baselineFits(p.metric) ? this.constants() : [];
    this.describe(p, info, lines, constants, any);
    if (!any) return;
    const shared = p.arms ? this.lines({ ...p, arms: null }, series) : [];
    p.chart.show(lines, constants, this.range(p, shared.length > 0 ? shared : lines), shared);
  }

  private lines(p: Panel, series: Map<number, Series>): Drawn[] {
    const axis = p.metric.startsWith("sft/") && this.x === "tokens" ? byStep : this.axis();
    const byArm = new Map<number, Series[]>();
    for (const [run, s] of series) {
      const arm = this.runs.get(run)?.arm;
      if (arm === undefined) continue;
      byArm.set(arm, [...(byArm.get(arm) ?? []), s]);
    }
    const drawn: Drawn[] = [];
    const own = p.arms ? new Set(p.arms.map((a) => a.index)) : null;
    for (const arm of this.arms.values()) {
      const list = byArm.get(arm.index);
      if (!list) continue;
      const mine = !own || own.has(arm.index);
      if (!mine && (p.arms?.length ?? 0) > 1) continue;
      const label = own && (this.config.facets?.length ?? 0) > 1 ? arm.short : arm.label;
      if (this.show === "runs" && mine) {
        for (const s of list) drawn.push({ arm, line: lineOf(s, axis, this.smoothing), label: list.length > 1 ? `${label}, seed ${this.runs.get(s.run)?.seed ?? s.run}` : label, run: s.run });
      } else {
        drawn.push({ arm, line: meanOf(list, axis, mine ? this.smoothing : 0), label, context: !mine, ...(list.length === 1 && list[0] ? { run: list[0].run } : {}) });
      }
    }
    return drawn;
  }

  private constants(): Constant[] {
    const out: Constant[] = [];
    for (const name of baselines) {
      const series = this.data.get(name);
      if (!series) continue;
      let sum = 0;
      let n = 0;
      for (const s of series.values()) {
        const v = s.values[s.values.length - 1];
        if (v !== undefined && Number.isFinite(v)) {
          sum += v;
          n++;
        }
      }
      if (n > 0) out.push({ label: this.info(name).label.toLowerCase().replace("sft", "SFT") + " " + metricValue(this.info(name), sum / n), value: sum / n });
    }
    return out;
  }

  private range(p: Panel, lines: Drawn[]): [number, number] {
    if (this.zoomed) return this.zoomed;
    let high = 0;
    for (const d of lines) {
      const last = d.line.x[d.line.x.length - 1];
      if (last !== undefined && last > high) high = last;
    }
    if (this.x === "step" && !p.metric.startsWith("sft/") && this.total > 0) return [0, Math.max(this.total, high)];
    if (high <= 0) return [0, 1];
    const step = niceStep(high / 5);
    return [0, Math.ceil(high / step - 1e-9) * step];
  }

  // describe writes the figure's title, subtitle and source: what is seen first, then what it is made of.
  private describe(p: Panel, info: MetricInfo, lines: Drawn[], constants: Constant[], any: boolean): void {
    const unit = unitOf(info);
    if (!any) {
      p.subtitle.textContent = (unit ? unit + "; " : "") + "nothing stored yet";
      return;
    }
    const own = lines.filter((d) => !d.context);
    const n = own.map((d) => d.line.members);
    const low = Math.min(...n);
    const high = Math.max(...n);
    const seeds = low === high ? `n = ${high}` : `n = ${low}–${high}`;
    const parts: string[] = [];
    if (unit) parts.push(p.main ? info.label.toLowerCase() + ", " + unit : unit);
    else if (p.main) parts.push(info.label.toLowerCase());
    if (p.main && this.show === "mean" && high > 1) parts.push(`mean and range over seeds, ${seeds}`);
    if (p.main && this.show === "runs") parts.push(count(own.length, "run", "runs"));
    if (this.smoothing > 0) parts.push(`smoothed ${this.smoothing}, raw behind`);
    if (this.zoomed) parts.push(`${xNames[this.x]} ${fixed(this.zoomed[0], 0)}–${fixed(this.zoomed[1], 0)}; esc: all`);
    p.subtitle.textContent = p.arms ? (this.show === "runs" ? count(own.length, "run", "runs") : seeds) : parts.join("; ");
    if (p.main && p.source) {
      p.title.textContent = finding(own, info) ?? `${info.label} by ${byNames[this.x]}`;
      p.source.textContent = this.sourceLine(p.metric, own, constants, info);
    }
  }

  private sourceLine(metric: string, own: Drawn[], constants: Constant[], info: MetricInfo): string {
    const series = this.data.get(metric);
    let total = 0;
    let shown = 0;
    for (const s of series?.values() ?? []) {
      total += s.total;
      shown += s.steps.length;
    }
    const parts = [own.some((d) => d.line.thinned) ? `${group(shown)} of ${group(total)} points: lowest and highest of each stretch are kept` : `${group(total)} points, nothing thinned`];
    if (constants.length > 0) parts.push("dotted: " + constants.map((c) => c.label + (info.percent ? " %" : "")).join(", "));
    parts.push("Click a point to open that step's rollouts; drag to zoom");
    return parts.map((t) => t.charAt(0).toUpperCase() + t.slice(1)).join(". ") + ".";
  }

  private open(metric: string, x: number, near: Drawn | null): void {
    const q = new URLSearchParams();
    let step = Math.round(x);
    if (this.x !== "step") step = this.stepOf(metric, x, near) ?? step;
    if (near?.run !== undefined) q.set("run", String(near.run));
    else if (this.config.single) q.set("run", String([...this.runs.keys()][0] ?? 0));
    else {
      q.set("study", String(this.config.study));
      if (near) q.set("arm", String(near.arm.index));
    }
    q.set("from", String(step));
    q.set("to", String(step));
    if (metric.startsWith("eval/")) q.set("phase", "eval");
    else if (!metric.startsWith("sft/")) q.set("phase", "rl");
    location.assign("/trajectories?" + q.toString());
  }

  // stepOf finds the step whose point is drawn at x on another axis.
  private stepOf(metric: string, x: number, near: Drawn | null): number | null {
    const axis = this.axis();
    let best: number | null = null;
    let gap = Infinity;
    for (const [run, s] of this.data.get(metric) ?? []) {
      if (near && this.runs.get(run)?.arm !== near.arm.index) continue;
      for (let i = 0; i < s.steps.length; i++) {
        const d = Math.abs(axis.of(run, s.steps[i] as number, s.walls[i] as number) - x);
        if (d < gap) {
          gap = d;
          best = s.steps[i] as number;
        }
      }
    }
    return best;
  }

  private zoom(range: [number, number] | null): void {
    if (!range && !this.zoomed) return;
    this.zoomed = range;
    setQuery({ zoom: range ? range.map((v) => String(Math.round(v * 100) / 100)).join("-") : null });
    if (this.x === "step") {
      this.data.range = range;
      this.data.reread();
    }
    for (const p of this.panels) p.chart.forget();
    this.redrawAll();
  }

  private fullScreen(e: KeyboardEvent): void {
    const figure = document.querySelector<HTMLElement>("figure.chart:hover") ?? this.panels[0]?.figure;
    if (!figure) return;
    e.preventDefault();
    if (document.fullscreenElement) void document.exitFullscreen();
    else void figure.requestFullscreen?.().catch(() => undefined);
  }
}

const baselines = ["baseline/random_legal", "baseline/sft", "baseline/sft_continued", "baseline/expert"];

const groupNames: Record<string, string> = {
  eval: "Evaluation",
  "eval/check": "Constraints in evaluation",
  train: "Training",
  reward: "Reward by component",
  check: "Constraints in training",
  policy: "Policy",
  rollout: "Rollouts",
  group: "Groups",
  sft: "SFT",
  baseline: "Baselines",
  speed: "Speed",
  time: "Time",
};

function readZoom(text: string | null): [number, number] | null {
  const m = /^([\d.]+)-([\d.]+)$/.exec(text ?? "");
  if (!m) return null;
  const range: [number, number] = [Number(m[1]), Number(m[2])];
  return range[1] > range[0] ? range : null;
}

// finding says what is seen when one arm's range lies above all others at the last shared point, and since when.
export function finding(lines: Drawn[], info: MetricInfo): string | null {
  const arms = lines.filter((d) => d.line.members > 1 && d.line.x.length > 0);
  if (arms.length < 2 || arms.length !== lines.length || arms.some((d) => d.run !== undefined)) return null;
  const shared = sharedX(arms.map((d) => d.line));
  const last = shared[shared.length - 1];
  if (last === undefined) return null;
  const leader = above(arms, last);
  if (!leader) return null;
  let since = last;
  for (let i = shared.length - 1; i >= 0; i--) {
    const x = shared[i] as number;
    if (above(arms, x) !== leader) break;
    since = x;
  }
  const name = info.label.charAt(0).toLowerCase() + info.label.slice(1);
  return since === last ? `${leader.label} has the highest ${name} at step ${last}` : `${leader.label} has the highest ${name} from step ${since} on`;
}

function above(arms: Drawn[], x: number): Drawn | null {
  const at = (l: Line): number => l.x.indexOf(x);
  let best: Drawn | null = null;
  for (const d of arms) if (!best || (d.line.y[at(d.line)] as number) > (best.line.y[at(best.line)] as number)) best = d;
  if (!best) return null;
  const floor = best.line.lo[at(best.line)] as number;
  return arms.every((d) => d === best || (d.line.hi[at(d.line)] as number) < floor) ? best : null;
}

function sharedX(lines: Line[]): number[] {
  const [first, ...rest] = lines;
  if (!first) return [];
  const sets = rest.map((l) => new Set(l.x));
  return [...first.x].filter((x) => sets.every((s) => s.has(x)));
}
