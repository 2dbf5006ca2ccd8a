// One chart: uPlot for axes, scales, cursor and zoom; lines, bands, marks and labels are drawn here, because arms need
// dashes, markers, gaps and direct labels that plain series do not have.

import uPlot from "uplot";
import type { Line } from "./aggregate";
import { niceStep, steady } from "./aggregate";
import { lowerBound } from "./data";
import { el, svg } from "./dom";
import type { MetricInfo } from "./format";
import { axisValue, fixed } from "./format";
import type { Arm } from "./marks";
import { armColor, armDash, markerPath } from "./marks";
import { color } from "./theme";

export interface Drawn {
  arm: Arm;
  line: Line;
  label: string;
  run?: number; // a single run's line
  context?: boolean; // drawn in grey behind the others
}

export interface Constant {
  label: string;
  value: number;
}

export interface ChartOptions {
  info: MetricInfo;
  height: number;
  labels: boolean; // direct labels at the right
  xLabel: string;
  sync: string;
  open(x: number, near: Drawn | null): void;
  zoom(range: [number, number] | null): void;
}

const pad = { top: 10, left: 42 };

export class Chart {
  readonly node: HTMLElement;
  private plot: uPlot | null = null;
  private lines: Drawn[] = [];
  private constants: Constant[] = [];
  private limits: [number, number] | null = null;
  private xLimits: [number, number] = [0, 1];
  private room = 12;
  private near: Drawn | null = null;
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly size = new ResizeObserver(() => this.fit());
  private width = 0;

  constructor(private readonly options: ChartOptions) {
    this.node = el("div", { class: "plot" });
    this.size.observe(this.node);
  }

  // show draws lines; x is the range of the axis.
  // The y axis also holds what others, which share it, draw.
  show(lines: Drawn[], constants: Constant[], x: [number, number], others: Drawn[] = []): void {
    this.lines = lines;
    this.constants = constants;
    const scale = this.scale();
    let low = Infinity;
    let high = -Infinity;
    for (const d of others.length > 0 ? others : lines) {
      const { line } = d;
      for (let i = 0; i < line.x.length; i++) {
        const at = line.x[i] as number;
        if (at < x[0] || at > x[1]) continue;
        const lo = d.line.raw ? Math.min(line.lo[i] as number, line.y[i] as number) : (line.lo[i] as number);
        const hi = line.hi[i] as number;
        if (lo < low) low = lo;
        if (hi > high) high = hi;
      }
    }
    this.limits = steady(low * scale, high * scale, this.options.info.zero === true, this.limits);
    if (this.options.info.percent && this.limits[1] > 100 && high * scale <= 100) this.limits[1] = 100;
    this.xLimits = x;
    const room = this.labelRoom();
    if (this.plot && Math.abs(room - this.room) > 1) {
      this.room = room;
      this.rebuild();
      return;
    }
    this.room = room;
    if (!this.plot) {
      this.rebuild();
      return;
    }
    this.plot.setData(this.grid(), false);
    this.plot.batch(() => {
      this.plot?.setScale("x", { min: this.xLimits[0], max: this.xLimits[1] });
      this.plot?.setScale("y", { min: this.limits?.[0] ?? 0, max: this.limits?.[1] ?? 1 });
    });
    this.plot.redraw(false, true);
  }

  get made(): boolean {
    return this.plot !== null;
  }

  // relabel names another x axis.
  relabel(xLabel: string): void {
    this.options.xLabel = xLabel;
    this.limits = null;
    if (this.plot) this.rebuild();
  }

  // forget lets the next drawing choose its limits anew.
  forget(): void {
    this.limits = null;
  }

  // restyle takes the colours of another theme.
  restyle(): void {
    if (this.plot) this.rebuild();
  }

  private scale(): number {
    return this.options.info.percent ? 100 : 1;
  }

  private grid(): uPlot.AlignedData {
    // the cursor rests on the steps that are drawn
    const longest = this.lines.reduce<Line | null>((a, d) => (a && a.x.length >= d.line.x.length ? a : d.line), null);
    const xs = longest && longest.x.length > 0 ? [...longest.x] : [this.xLimits[0], this.xLimits[1]];
    return [xs, xs.map(() => null)];
  }

  private fit(): void {
    const width = Math.floor(this.node.clientWidth);
    if (width < 40 || width === this.width) return;
    this.width = width;
    if (this.plot) this.plot.setSize({ width, height: this.options.height });
    else if (this.lines.length > 0) this.rebuild();
  }

  private labelRoom(): number {
    if (!this.options.labels) return this.options.xLabel === "step" ? 12 : 36;
    let widest = 0;
    for (const d of this.lines) widest = Math.max(widest, d.context ? 0 : textWidth(d.label + " 000.0" + fewerText(d.line, d.line.x.length - 1)));
    for (const c of this.constants) widest = Math.max(widest, textWidth(c.label));
    return Math.min(Math.max(56, widest + 22), Math.max(90, this.width * 0.34));
  }

  private rebuild(): void {
    this.width = Math.floor(this.node.clientWidth);
    if (this.width < 40) return;
    this.plot?.destroy();
    const quiet = color("ink-3");
    const font = "10.5px " + mono();
    const [low, high] = this.limits ?? [0, 1];
    this.plot = new uPlot(
      {
        width: this.width,
        height: this.options.height,
        padding: [pad.top, this.room, 0, 0],
        legend: { show: false },
        cursor: {
          sync: { key: this.options.sync, scales: ["x", null] },
          drag: { x: true, y: false, setScale: false },
          points: { show: false },
          y: false,
        },
        scales: {
          x: { time: false, range: () => this.xLimits },
          y: { range: () => this.limits ?? [low, high] },
        },
        series: [{}, { show: false }],
        axes: [
          {
            stroke: quiet,
            font,
            size: 22,
            gap: 3,
            grid: { show: false },
            ticks: { stroke: color("rule-2"), size: 4, width: 1 },
            border: { show: true, stroke: color("rule-2"), width: 1 },
            splits: (_u, _i, min, max) => splits(min, max, this.width < 320 ? 4 : 6),
            values: (_u, at) => {
              const step = (at[1] ?? 1) - (at[0] ?? 0);
              return at.map((v, i) => axisValue(v, step || 1) + (i === at.length - 1 && this.options.xLabel !== "step" ? " " + this.options.xLabel : ""));
            },
          },
          {
            stroke: quiet,
            font,
            // Wide enough for the longest value: "−0.9875" is longer than "0.5".
            size: (_u, values) => Math.max(pad.left, 12 + 6.4 * Math.max(0, ...(values ?? []).map((v) => v.length))),
            gap: 6,
            grid: { stroke: color("rule"), width: 1 },
            ticks: { show: false },
            splits: (_u, _i, min, max) => splits(min, max, this.options.height < 160 ? 3 : 5),
            values: (_u, at) => {
              const step = (at[1] ?? 1) - (at[0] ?? 0);
              return at.map((v) => axisValue(v, step || 1));
            },
          },
        ],
        hooks: {
          draw: [(u) => this.draw(u)],
          setCursor: [(u) => this.hover(u)],
          setSelect: [(u) => this.select(u)],
        },
      },
      this.grid(),
      this.node,
    );
    this.node.append(this.tip);
    this.wire(this.plot.over);
  }

  private wire(over: HTMLElement): void {
    let downX = 0;
    over.addEventListener("mousedown", (e) => (downX = e.clientX));
    over.addEventListener("click", (e) => {
      if (!this.plot || Math.abs(e.clientX - downX) > 3) return;
      const at = this.stepAt(this.plot);
      if (at !== null) this.options.open(at, this.near);
    });
    over.addEventListener("dblclick", () => this.options.zoom(null));
    over.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
      if (this.near) {
        this.near = null;
        this.plot?.redraw(false, false);
      }
    });
  }

  private select(u: uPlot): void {
    if (u.select.width < 6) return;
    const from = u.posToVal(u.select.left, "x");
    const to = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.options.zoom([from, to]);
  }

  private stepAt(u: uPlot): number | null {
    const i = u.cursor.idx;
    return i === null || i === undefined ? null : ((u.data[0][i] as number | undefined) ?? null);
  }

  // hover fills the tooltip in the chart under the pointer; the others show the cursor alone.
  private hover(u: uPlot): void {
    const x = this.stepAt(u);
    const top = u.cursor.top ?? -1;
    if (x === null || top < 0 || !u.over.matches(":hover")) {
      this.tip.hidden = true;
      return;
    }
    const scale = this.scale();
    const found: { d: Drawn; i: number; gap: number }[] = [];
    for (const d of this.lines) {
      if (d.context) continue;
      const i = nearest(d.line.x, x);
      if (i < 0) continue;
      const y = (d.line.y[i] as number) * scale;
      const gap = Number.isFinite(y) ? Math.abs(u.valToPos(y, "y") - top) : Infinity;
      found.push({ d, i, gap });
    }
    const close = found.reduce<{ d: Drawn; gap: number } | null>((a, f) => (f.gap < (a?.gap ?? 24) ? f : a), null);
    const near = close?.d ?? null;
    if (near !== this.near) {
      this.near = near;
      if (this.lines.length > 1) u.redraw(false, false);
    }
    this.fillTip(u, x, found);
  }

  private fillTip(u: uPlot, x: number, found: { d: Drawn; i: number; gap: number }[]): void {
    const most = 10;
    const { info } = this.options;
    const sorted = found.length > most ? [...found].sort((a, b) => a.gap - b.gap).slice(0, most) : found;
    sorted.sort((a, b) => (b.d.line.y[b.i] as number) - (a.d.line.y[a.i] as number));
    const head = el("div", { class: "tip-head" }, el("b", {}, (this.options.xLabel || "step") + " " + axisValue(x, x % 1 === 0 ? 1 : 0.1)), el("span", { class: "caption" }, "click: rollouts"));
    const table = el("table", {});
    for (const { d, i } of sorted) {
      const value = (d.line.y[i] as number) * this.scale();
      const n = d.line.n[i] as number;
      const spread = n > 1 ? `[${fixed((d.line.lo[i] as number) * this.scale(), info.digits)}, ${fixed((d.line.hi[i] as number) * this.scale(), info.digits)}]` : "";
      const mark = svg("svg", { width: 12, height: 12, viewBox: "0 0 12 12", class: "mark arm-" + (((d.arm.color - 1) % 8) + 1) }, svg("path", { class: "marker", d: markerPath(d.arm.marker, 6, 6, 3.4) }));
      table.append(
        el("tr", d === this.near ? { class: "near" } : {}, el("td", {}, mark as unknown as Node), el("td", {}, d.label), el("td", { class: "mono" }, fixed(value, info.digits)), el("td", { class: "mono faint" }, spread), el("td", { class: "faint" }, n > 1 ? "n = " + n : "")),
      );
    }
    const rest = found.length - sorted.length;
    this.tip.replaceChildren(head, table, ...(rest > 0 ? [el("div", { class: "caption" }, `and ${rest} more; these are the nearest`)] : []));
    this.tip.hidden = false;
    const left = u.over.offsetLeft + (u.cursor.left ?? 0);
    const flip = left + this.tip.offsetWidth + 24 > this.node.clientWidth;
    const place = flip ? left - this.tip.offsetWidth - 14 : left + 14;
    // in the half of the chart that the pointer is not in
    const height = u.over.clientHeight;
    const low = (u.cursor.top ?? 0) < height / 2;
    const top = u.over.offsetTop + (low ? Math.max(8, height - this.tip.offsetHeight - 8) : 8);
    this.tip.style.transform = `translate(${Math.max(0, Math.round(place))}px, ${Math.round(top)}px)`;
  }

  private draw(u: uPlot): void {
    const ctx = u.ctx;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - 4 * ratio, width + 4 * ratio, height + 8 * ratio);
    ctx.clip();
    ctx.lineJoin = "round";
    const dim = this.near !== null && this.lines.length > 4;
    const many = this.lines.length > 24;
    for (const d of this.lines) if (!d.context && !many) this.band(u, d, dim && d !== this.near);
    for (const c of this.constants) this.constant(u, c);
    for (const d of this.lines) if (d.context) this.stroke(u, d, d.line.y, 0.5, 1);
    for (const d of this.lines) {
      if (d.context) continue;
      const weak = (dim && d !== this.near) || many;
      if (d.line.raw) this.stroke(u, d, d.line.raw, weak ? 0.12 : 0.35, 1);
      this.stroke(u, d, d.line.y, weak && d !== this.near ? 0.3 : 1, d.run !== undefined && this.lines.length > 4 ? 1 : 1.75);
    }
    ctx.restore();
    this.drawMarks(u);
    this.drawEnds(u);
  }

  private px(u: uPlot, x: number): number {
    return u.valToPos(x, "x", true);
  }

  private py(u: uPlot, y: number): number {
    return u.valToPos(y * this.scale(), "y", true);
  }

  private band(u: uPlot, d: Drawn, weak: boolean): void {
    const { line } = d;
    const ctx = u.ctx;
    ctx.fillStyle = armColor(d.arm);
    ctx.globalAlpha = weak ? 0.04 : 0.13;
    let start = 0;
    const fill = (from: number, to: number): void => {
      if (to - from < 1) return;
      ctx.beginPath();
      for (let i = from; i <= to; i++) ctx.lineTo(this.px(u, line.x[i] as number), this.py(u, line.hi[i] as number));
      for (let i = to; i >= from; i--) ctx.lineTo(this.px(u, line.x[i] as number), this.py(u, line.lo[i] as number));
      ctx.fill();
    };
    for (let i = 0; i <= line.x.length; i++) {
      if (i < line.x.length && (line.n[i] as number) > 1) continue;
      fill(start, i - 1);
      start = i + 1;
    }
    ctx.globalAlpha = 1;
  }

  private stroke(u: uPlot, d: Drawn, y: Float64Array, alpha: number, width: number): void {
    const { line } = d;
    const ctx = u.ctx;
    ctx.strokeStyle = d.context ? color("rule-2") : armColor(d.arm);
    ctx.globalAlpha = alpha;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(armDash(d.arm).map((v) => v * devicePixelRatio));
    // where some of the runs have not come yet, or have ended early, the mean is thin: it rests on fewer
    ctx.beginPath();
    let pen = false;
    let thin = false;
    let [fromX, fromY] = [0, 0];
    for (let i = 0; i < line.x.length; i++) {
      const v = y[i] as number;
      if (!Number.isFinite(v) || Number.isNaN(line.x[i])) {
        pen = false;
        continue;
      }
      const px = this.px(u, line.x[i] as number);
      const py = this.py(u, v);
      const fewer = (line.n[i] as number) < line.members;
      if (fewer !== thin) {
        ctx.stroke();
        thin = fewer;
        ctx.lineWidth = (thin ? Math.min(1, width) : width) * devicePixelRatio;
        ctx.globalAlpha = thin ? alpha * 0.6 : alpha;
        ctx.beginPath();
        ctx.moveTo(pen ? fromX : px, pen ? fromY : py);
      }
      if (pen) ctx.lineTo(px, py);
      else ctx.moveTo(px, py);
      pen = true;
      [fromX, fromY] = [px, py];
    }
    ctx.stroke();
    ctx.globalAlpha = alpha;
    ctx.setLineDash([]);
    if (line.x.length <= 12 && !d.context) this.dots(u, d, y);
    ctx.globalAlpha = 1;
  }

  private dots(u: uPlot, d: Drawn, y: Float64Array): void {
    for (let i = 0; i < d.line.x.length; i++) {
      if (Number.isFinite(y[i])) this.marker(u, d, d.line.x[i] as number, y[i] as number, 2.6);
    }
  }

  private marker(u: uPlot, d: Drawn, x: number, y: number, r: number): void {
    const ctx = u.ctx;
    const path = new Path2D(markerPath(d.arm.marker, this.px(u, x), this.py(u, y), r * devicePixelRatio));
    ctx.fillStyle = armColor(d.arm);
    ctx.strokeStyle = color("paper");
    ctx.lineWidth = devicePixelRatio;
    ctx.fill(path);
    ctx.stroke(path);
  }

  private constant(u: uPlot, c: Constant): void {
    const y = this.py(u, c.value);
    if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
    const ctx = u.ctx;
    ctx.strokeStyle = color("ink-2");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  // drawMarks draws a dashed upright and a flag where a value is not a number.
  private drawMarks(u: uPlot): void {
    const marks = this.lines.filter((d) => !d.context).flatMap((d) => d.line.marks);
    if (marks.length === 0) return;
    const ctx = u.ctx;
    const r = devicePixelRatio;
    const foot = u.bbox.top + u.bbox.height;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("warn");
    ctx.lineWidth = r;
    let named = -Infinity;
    for (const m of marks.sort((a, b) => a.x - b.x).slice(0, 200)) {
      const x = this.px(u, m.x);
      if (x < u.bbox.left - 1 || x > u.bbox.left + u.bbox.width + 1) continue;
      ctx.setLineDash([2 * r, 3 * r]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, foot);
      ctx.stroke();
      ctx.fill(new Path2D(`M${x} ${foot}l${-3.5 * r} ${-5 * r}h${7 * r}z`));
      const text = `${m.what}, run ${m.run}`;
      ctx.font = `${11 * r}px ` + sans();
      if (x - named > ctx.measureText(text).width + 8 * r) {
        ctx.fillStyle = color("ink-2");
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        const w = ctx.measureText(text).width;
        ctx.setLineDash([]);
        ctx.lineWidth = 4 * r;
        ctx.strokeStyle = color("paper");
        ctx.strokeText(text, Math.min(x + 4 * r, u.bbox.left + u.bbox.width - w), u.bbox.top);
        ctx.strokeStyle = color("warn");
        ctx.lineWidth = r;
        ctx.fillText(text, Math.min(x + 4 * r, u.bbox.left + u.bbox.width - w), u.bbox.top);
        ctx.fillStyle = color("warn");
        named = x;
      }
    }
    ctx.restore();
  }

  // drawEnds puts a marker at each line's end and its name beside it, moved apart.
  private drawEnds(u: uPlot): void {
    const r = devicePixelRatio;
    const right = u.bbox.left + u.bbox.width;
    const ends: { d: Drawn | null; x: number; y: number; at: number; text: string; strong: boolean }[] = [];
    const many = this.lines.length > 24;
    for (const d of this.lines) {
      if (d.context || (many && d !== this.near)) continue;
      for (let i = d.line.x.length - 1; i >= 0; i--) {
        const v = d.line.y[i] as number;
        const x = d.line.x[i] as number;
        if (!Number.isFinite(v) || x > this.xLimits[1] || x < this.xLimits[0]) continue;
        this.marker(u, d, x, v, 3.4);
        const y = this.py(u, v);
        ends.push({ d, x: this.px(u, x), y, at: y, text: `${d.label} ${fixed(v * this.scale(), this.options.info.digits)}${fewerText(d.line, i)}`, strong: d === this.near });
        break;
      }
    }
    if (!this.options.labels) return;
    for (const c of this.constants) {
      const y = this.py(u, c.value);
      if (y >= u.bbox.top && y <= u.bbox.top + u.bbox.height) ends.push({ d: null, x: right, y, at: y, text: c.label, strong: false });
    }
    // names stand beside the last point; names of constants at the right edge
    const column = Math.min(right, ends.reduce((m, e) => (e.d ? Math.max(m, e.x) : m), 0)) + 9 * r;
    const inside = column < right - 60 * r;
    for (const own of inside ? [ends.filter((e) => e.d), ends.filter((e) => !e.d)] : [ends]) {
      spread(own, 14 * r, u.bbox.top + 4 * r, u.bbox.top + u.bbox.height);
    }
    const ctx = u.ctx;
    ctx.save();
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const e of ends) {
      const from = e.d ? column : right + 9 * r;
      const roomFor = right + this.room * r - from - 2 * r;
      if (Math.abs(e.at - e.y) > 3 * r || e.x < from - 12 * r) {
        ctx.strokeStyle = color("rule-2");
        ctx.lineWidth = r;
        ctx.beginPath();
        ctx.moveTo(e.x + 5 * r, e.y);
        if (e.x < from - 24 * r) ctx.lineTo(from - 12 * r, e.y);
        ctx.lineTo(from - 2 * r, e.at);
        ctx.stroke();
      }
      ctx.font = `${e.strong ? "650 " : ""}${(e.d ? 12 : 11) * r}px ` + sans();
      const text = shorten(ctx, e.text, roomFor);
      ctx.lineJoin = "round";
      ctx.lineWidth = 4 * r;
      ctx.strokeStyle = color("paper");
      ctx.strokeText(text, from, e.at);
      ctx.fillStyle = color(e.d ? "ink" : "ink-3");
      ctx.fillText(text, from, e.at);
    }
    ctx.restore();
  }
}

// spread moves labels apart by at least gap, keeping their order and staying inside.
export function spread(list: { y: number; at: number }[], gap: number, low: number, high: number): void {
  list.sort((a, b) => a.y - b.y);
  for (let pass = 0; pass < 40; pass++) {
    let moved = false;
    for (let i = 1; i < list.length; i++) {
      const a = list[i - 1] as { at: number };
      const b = list[i] as { at: number };
      const overlap = gap - (b.at - a.at);
      if (overlap > 0.5) {
        a.at -= overlap / 2;
        b.at += overlap / 2;
        moved = true;
      }
    }
    for (const e of list) e.at = Math.min(high, Math.max(low, e.at));
    if (!moved) break;
  }
}

// fewerText says that a mean rests on fewer runs than its line has.
function fewerText(line: Line, i: number): string {
  const n = line.n[i] as number;
  return n < line.members ? `, n = ${n} of ${line.members}` : "";
}

function shorten(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let cut = text;
  while (cut.length > 3 && ctx.measureText(cut + "…").width > room) cut = cut.slice(0, -1);
  return cut.trimEnd() + "…";
}

function nearest(xs: Float64Array, x: number): number {
  const n = xs.length;
  if (n === 0) return -1;
  const i = lowerBound(xs, x);
  if (i === 0) return 0;
  if (i === n) return n - 1;
  return x - (xs[i - 1] as number) <= (xs[i] as number) - x ? i - 1 : i;
}

function splits(min: number, max: number, most: number): number[] {
  const step = niceStep((max - min) / most);
  const out: number[] = [];
  for (let v = Math.ceil(min / step - 1e-9) * step; v <= max + step * 1e-6; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out;
}

const measure = document.createElement("canvas").getContext("2d");

function textWidth(text: string): number {
  if (!measure) return text.length * 7;
  measure.font = "12px " + sans();
  return measure.measureText(text).width;
}

let face = "";

function sans(): string {
  face ||= getComputedStyle(document.documentElement).getPropertyValue("--sans").trim() || "sans-serif";
  return face;
}

let numbers = "";

function mono(): string {
  numbers ||= getComputedStyle(document.documentElement).getPropertyValue("--mono").trim() || "monospace";
  return numbers;
}
