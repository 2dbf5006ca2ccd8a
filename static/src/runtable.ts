// The table of a study's runs: sorted and filtered here, and windowed, so that ten thousand runs cost as much as fifty.

import { parseValue } from "./data";
import { all, busy, el, one, query, setQuery, status, svg, throttle } from "./dom";
import type { MetricInfo } from "./format";
import { count, duration, group, metricValue, unitOf } from "./format";
import type { Frame } from "./live";
import type { Arm } from "./marks";
import { markSVG } from "./marks";
import { ruleMarks } from "./rule";
import type { Clause } from "./runfilter";
import { parseFilter } from "./runfilter";

export interface RunData {
  id: number;
  arm: number;
  seed: string;
  state: string;
  kind: string;
  word: string;
  cause?: string;
  step: number;
  total: number;
  device?: string;
  left?: string;
  left_s: number;
  values: (number | string | null)[] | null;
}

export interface RunTableData {
  columns: { metric: string; info: MetricInfo }[];
  rows: RunData[] | null;
}

interface Row extends RunData {
  numbers: (number | null)[];
  label: string;
  from: { step: number; at: number } | null; // for the pace while it is watched
}

interface Column {
  key: string;
  head: string;
  class: string;
  value(r: Row): number | string | null;
  cell(r: Row): Node | string;
}

const rowHeight = 31;
const margin = 12; // rows drawn beyond the window
const most = 60; // rows shown without scrolling inside the table

const words: Record<string, [string, string]> = {
  queued: ["queue", "queued"],
  starting: ["run", "starting"],
  running: ["run", "running"],
  stopping: ["stop", "stopping"],
  succeeded: ["ok", "finished"],
  failed: ["bad", "failed"],
  stopped: ["stop", "stopped"],
  lost: ["lost", "lost"],
};

export class RunTable {
  private readonly rows: Row[];
  private readonly byID = new Map<number, Row>();
  private readonly columns: Column[];
  private readonly arms: Map<number, Arm>;
  private order: Row[] = [];
  private sort: string;
  private down: boolean;
  private readonly host = one("#run-window");
  private readonly filter = one<HTMLInputElement>("#run-filter");
  private body: HTMLTableSectionElement | null = null;
  private readonly marks = new Map<number, SVGElement>();

  constructor(
    private readonly data: RunTableData,
    arms: Arm[],
  ) {
    this.arms = new Map(arms.map((a) => [a.index, a]));
    this.rows = (data.rows ?? []).map((r) => ({
      ...r,
      numbers: (r.values ?? []).map((v) => (v === null ? null : parseValue(v))),
      label: this.arms.get(r.arm)?.label ?? "arm " + r.arm,
      from: null,
    }));
    for (const r of this.rows) this.byID.set(r.id, r);
    this.columns = this.makeColumns();
    const sort = query("sort") ?? "run";
    this.down = sort.startsWith("-");
    this.sort = sort.replace(/^-/, "");
  }

  private makeColumns(): Column[] {
    const id: Column = {
      key: "run",
      head: "run",
      class: "num id",
      value: (r) => r.id,
      cell: (r) => el("a", { href: "/runs/" + r.id }, String(r.id)),
    };
    const fixed: Column[] = [
      id,
      { key: "arm", head: "arm", class: "nowrap", value: (r) => r.arm, cell: (r) => this.armKey(r) },
      { key: "seed", head: "seed", class: "num", value: (r) => Number(r.seed), cell: (r) => r.seed },
      { key: "status", head: "status", class: "", value: (r) => Object.keys(words).indexOf(r.state), cell: (r) => this.statusCell(r) },
      { key: "progress", head: "progress", class: "wide", value: (r) => (r.total > 0 ? r.step / r.total : 0), cell: (r) => rule(r) },
      { key: "step", head: "step", class: "num wide", value: (r) => r.step, cell: (r) => (r.state === "queued" && r.step === 0 ? "" : `${group(r.step)} / ${group(r.total)}`) },
    ];
    const metrics = this.data.columns.map((c, i): Column => {
      const unit = unitOf(c.info);
      return {
        key: c.metric,
        head: c.info.label.charAt(0).toLowerCase() + c.info.label.slice(1) + (unit ? ", " + unit : ""),
        class: "num wide",
        value: (r) => r.numbers[i] ?? null,
        cell: (r) => {
          const v = r.numbers[i];
          return v === null || v === undefined ? "–" : metricValue(c.info, v);
        },
      };
    });
    return [
      ...fixed,
      ...metrics,
      { key: "device", head: "device", class: "num wide", value: (r) => r.device ?? null, cell: (r) => r.device || "–" },
      { key: "left", head: "left, or spent", class: "num", value: (r) => (r.left_s < 0 ? null : r.left_s), cell: (r) => r.left || "–" },
    ];
  }

  private armKey(r: Row): Node {
    const arm = this.arms.get(r.arm);
    if (!arm) return document.createTextNode(r.label);
    let mark = this.marks.get(arm.index);
    if (!mark) this.marks.set(arm.index, (mark = markSVG(arm)));
    return el("span", { class: "key arm-" + (((arm.color - 1) % 8) + 1) }, mark.cloneNode(true), el("span", {}, arm.label));
  }

  private statusCell(r: Row): Node {
    const node = status(r.kind, r.word);
    if (r.cause) node.title = r.cause;
    return node;
  }

  start(): void {
    if (!this.host) return;
    const head = el("tr", {});
    for (const c of this.columns) {
      const button = el("button", { type: "button" }, c.head);
      button.addEventListener("click", () => this.sortBy(c.key));
      head.append(el("th", { scope: "col", class: c.class, "data-key-column": c.key }, button));
    }
    this.body = el("tbody", {});
    this.host.replaceChildren(el("table", { class: "table table-rows run-table", "data-rows": true }, el("thead", {}, head), this.body));
    this.host.classList.toggle("run-window-tall", this.rows.length > most);
    this.host.addEventListener("scroll", throttle(16, () => this.draw()));
    if (this.filter) {
      this.filter.value = query("runs") ?? "";
      this.filter.addEventListener(
        "input",
        throttle(80, () => {
          setQuery({ runs: this.filter?.value || null });
          this.arrange();
        }),
      );
    }
    this.arrange();
  }

  private sortBy(key: string): void {
    this.down = this.sort === key ? !this.down : this.data.columns.some((c) => c.metric === key);
    this.sort = key;
    setQuery({ sort: key === "run" && !this.down ? null : (this.down ? "-" : "") + key });
    this.arrange();
  }

  // arrange filters and sorts. What is missing or not a number comes last both ways.
  private arrange(): void {
    const { clauses, problem } = parseFilter(this.filter?.value ?? "");
    this.filter?.setAttribute("aria-invalid", String(problem !== ""));
    const column = this.columns.find((c) => c.key === this.sort) ?? this.columns[0];
    if (!column) return;
    this.order = this.rows.filter((r) => clauses.every((c) => this.fits(r, c)));
    const rank = (v: number | string | null): number => (v === null || (typeof v === "number" && !Number.isFinite(v)) ? 1 : 0);
    this.order.sort((a, b) => {
      const x = column.value(a);
      const y = column.value(b);
      const r = rank(x) - rank(y);
      if (r !== 0) return r;
      let by = 0;
      if (rank(x) === 0) by = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : (x as number) - (y as number);
      return (this.down ? -by : by) || a.id - b.id;
    });
    for (const th of all("th", this.host ?? document)) {
      if (th.dataset.keyColumn === column.key) th.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    const note = one("#run-count");
    if (note) {
      note.textContent = problem || (this.order.length === this.rows.length ? "" : `${group(this.order.length)} of ${count(this.rows.length, "run", "runs")}`);
      note.classList.toggle("status-bad", problem !== "");
    }
    if (this.host) this.host.scrollTop = 0;
    this.draw();
  }

  private fits(r: Row, c: Clause): boolean {
    switch (c.key) {
      case "":
        return (r.label + " " + r.word + " " + r.id + " " + (r.device ?? "") + " " + (r.cause ?? "")).toLowerCase().includes(c.text);
      case "status":
        if (c.text === "active") return ["starting", "running", "stopping"].includes(r.state);
        return r.state.includes(c.text) || r.word.includes(c.text);
      case "arm":
        return r.label.toLowerCase().includes(c.text);
      case "seed":
        return c.op === "is" ? r.seed === c.text : compare(Number(r.seed), c.op, c.number);
      case "run":
        return compare(r.id, c.op, c.number);
      case "step":
        return compare(r.step, c.op, c.number);
      case "device":
        return (r.device ?? "").includes(c.text);
    }
    const i = this.data.columns.findIndex((m) => m.metric === c.key || m.metric.endsWith("/" + c.key) || m.info.label.toLowerCase() === c.key);
    const v = i < 0 ? null : r.numbers[i];
    if (v === null || v === undefined) return false;
    return compare(this.data.columns[i]?.info.percent ? v * 100 : v, c.op, c.number);
  }

  // draw puts the rows of the window into the table, with rooms above and below for the rest.
  private draw(): void {
    if (!this.body || !this.host) return;
    const tall = this.rows.length > most;
    let from = 0;
    let to = this.order.length;
    if (tall) {
      from = Math.max(0, Math.floor(this.host.scrollTop / rowHeight) - margin);
      to = Math.min(this.order.length, from + Math.ceil(this.host.clientHeight / rowHeight) + 2 * margin);
    }
    const room = (n: number): HTMLElement[] => {
      if (n <= 0) return [];
      const cell = el("td", { colspan: this.columns.length });
      cell.style.height = n * rowHeight + "px";
      return [el("tr", { class: "room", "aria-hidden": "true" }, cell)];
    };
    const current = one("tr.current", this.body)?.dataset.run;
    this.body.replaceChildren(...room(from), ...this.order.slice(from, to).map((r) => this.row(r, String(r.id) === current)), ...room(this.order.length - to));
    if (this.order.length === 0) this.body.append(el("tr", {}, el("td", { colspan: this.columns.length, class: "quiet" }, "No run fits this filter.")));
  }

  private row(r: Row, current: boolean): HTMLElement {
    const tr = el("tr", { "data-run": r.id, "data-href": "/runs/" + r.id, class: current ? "current" : undefined });
    for (const c of this.columns) tr.append(el("td", { class: c.class }, c.cell(r)));
    return tr;
  }

  // apply takes what a frame says of the runs. Cells change in place; the order waits until it is asked for.
  apply(f: Frame): void {
    const touched = new Set<Row>();
    for (const m of f.runs) {
      const r = this.byID.get(m.id);
      if (!r) continue;
      if (r.state !== m.state) {
        [r.kind, r.word] = words[m.state] ?? ["info", m.state];
        r.from = null;
      }
      if (m.state === "running" && m.phase && m.phase !== "rl") r.word = "running, " + (m.phase === "sft" ? "SFT" : m.phase);
      else if (m.state === "running") r.word = "running";
      r.state = m.state;
      r.cause = m.cause;
      r.step = m.step;
      r.total = m.total || r.total;
      r.device = m.device;
      this.pace(r);
      touched.add(r);
    }
    const columns = new Map(this.data.columns.map((c, i) => [c.metric, i]));
    for (let i = 0; i < f.n; i++) {
      const at = columns.get(f.metrics[f.metric[i] as number] as string);
      const r = at === undefined ? undefined : this.byID.get(f.run[i] as number);
      if (at === undefined || !r) continue;
      r.numbers[at] = f.value[i] as number;
      touched.add(r);
    }
    if (!this.body) return;
    for (const r of touched) {
      const tr = one(`tr[data-run="${r.id}"]`, this.body);
      if (tr && !(busy(tr) && tr.contains(document.activeElement))) tr.replaceWith(this.row(r, tr.classList.contains("current")));
    }
  }

  // pace is the time left at the speed seen since the page was opened.
  private pace(r: Row): void {
    if (r.state !== "running") {
      if (r.state !== "queued" && r.from === null) r.left = r.left ?? "–";
      return;
    }
    const now = performance.now() / 1000;
    if (!r.from) r.from = { step: r.step, at: now };
    const steps = r.step - r.from.step;
    if (steps >= 2) {
      r.left_s = ((now - r.from.at) / steps) * Math.max(0, r.total - r.step);
      r.left = duration(r.left_s);
    }
  }
}

function compare(v: number, op: Clause["op"], to: number): boolean {
  switch (op) {
    case "is":
      return v === to;
    case "<":
      return v < to;
    case ">":
      return v > to;
    case "<=":
      return v <= to;
    case ">=":
      return v >= to;
  }
}

function rule(r: Row): SVGElement {
  const width = 140;
  const live = ["starting", "running", "stopping"].includes(r.state);
  const x = r.total > 0 ? Math.round(Math.min(1, r.step / r.total) * width * 10) / 10 : 0;
  return svg(
    "svg",
    { class: "rule-svg" + (live ? "" : " rule-off"), width, height: 20, viewBox: `0 0 ${width} 20`, role: "img", "aria-label": `step ${r.step} of ${r.total}` },
    svg("path", { class: "minor", d: ruleMarks(width, r.total, 5, 3, 3.2) }),
    svg("path", { class: "major", d: ruleMarks(width, r.total, r.total / 4, 7, 12) }),
    svg("path", { class: "base", d: `M0 13H${width}` }),
    svg("path", { class: "done", d: `M0 13H${x}` }),
    svg("path", { class: "now", d: `M${x} 15l-3.5 5h7z` }),
  );
}
