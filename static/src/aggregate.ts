// From the series of runs to the lines of a chart. What is shown of a group depends on its members alone.

import type { Series } from "./data";
import { lowerBound } from "./data";

export interface Line {
  x: Float64Array;
  y: Float64Array; // the mean; NaN where nothing finite is known
  lo: Float64Array;
  hi: Float64Array;
  n: Uint16Array; // runs behind each point
  raw: Float64Array | null; // before smoothing, when y is smoothed
  marks: { x: number; run: number; what: string }[]; // NaN and Inf
  members: number; // runs with any point
  thinned: boolean;
}

export interface Axis {
  // of turns a point of a run into a place on the x axis; NaN leaves it out.
  of(run: number, step: number, wall: number): number;
}

export const byStep: Axis = { of: (_run, step) => step };

// elapsed measures from a run's start; waiting in the queue does not count.
export function elapsed(started: Map<number, number>, perSecond: number): Axis {
  return { of: (run, _step, wall) => Math.max(0, (wall - (started.get(run) || wall)) / 1000) * perSecond };
}

// cumulative adds up a per-step amount: the tokens that a run has seen at a step.
export function cumulative(series: Map<number, Series> | undefined, factor: Map<number, number>): Axis {
  const sums = new Map<number, { steps: number[]; total: number[] }>();
  for (const [run, s] of series ?? []) {
    const total: number[] = [];
    let sum = 0;
    let before = 0;
    s.steps.forEach((step, i) => {
      const v = s.values[i] as number;
      if (Number.isFinite(v)) sum += v * (step - before) * (factor.get(run) ?? 1);
      before = step;
      total.push(sum);
    });
    sums.set(run, { steps: s.steps, total });
  }
  return {
    of(run, step) {
      const s = sums.get(run);
      if (!s || s.steps.length === 0) return NaN;
      const i = lowerBound(s.steps, step + 1) - 1;
      return i < 0 ? 0 : (s.total[i] as number);
    },
  };
}

// lineOf is one run's own line.
export function lineOf(s: Series, axis: Axis, smoothing: number): Line {
  const n = s.steps.length;
  const line = emptyLine(n);
  for (let i = 0; i < n; i++) {
    const x = axis.of(s.run, s.steps[i] as number, s.walls[i] as number);
    const v = s.values[i] as number;
    line.x[i] = x;
    line.y[i] = Number.isFinite(v) ? v : NaN;
    line.n[i] = 1;
    if (!Number.isFinite(v)) line.marks.push({ x, run: s.run, what: nameOf(v) });
  }
  line.lo.set(line.y);
  line.hi.set(line.y);
  line.members = n > 0 ? 1 : 0;
  line.thinned = s.thinned;
  return smoothing > 0 ? smooth(line, smoothing) : line;
}

const buckets = 400;

// meanOf is the mean over runs at each step with the lowest and the highest run. Where the server has thinned, runs do
// not share steps: then steps are gathered into buckets, and lowest and highest are over all points of a bucket.
export function meanOf(list: Series[], axis: Axis, smoothing: number): Line {
  const series = list.filter((s) => s.steps.length > 0);
  if (series.length === 0) return emptyLine(0);
  if (series.length === 1) return lineOf(series[0] as Series, axis, smoothing);
  const thinned = series.some((s) => s.thinned);
  let low = Infinity;
  let high = -Infinity;
  for (const s of series) {
    low = Math.min(low, s.steps[0] as number);
    high = Math.max(high, s.steps[s.steps.length - 1] as number);
  }
  const width = thinned ? Math.max(1, (high - low) / buckets) : 1;
  const cells = new Map<number, { runs: Map<number, [number, number]>; x: number; xs: number; lo: number; hi: number }>();
  const marks: Line["marks"] = [];
  for (const s of series) {
    for (let i = 0; i < s.steps.length; i++) {
      const step = s.steps[i] as number;
      const v = s.values[i] as number;
      const x = axis.of(s.run, step, s.walls[i] as number);
      if (!Number.isFinite(v)) {
        marks.push({ x, run: s.run, what: nameOf(v) });
        continue;
      }
      if (Number.isNaN(x)) continue;
      const key = thinned ? Math.floor((step - low) / width) : step;
      let c = cells.get(key);
      if (!c) cells.set(key, (c = { runs: new Map(), x: 0, xs: 0, lo: v, hi: v }));
      const own = c.runs.get(s.run);
      if (own) {
        own[0] += v;
        own[1]++;
      } else c.runs.set(s.run, [v, 1]);
      c.x += x;
      c.xs++;
      c.lo = Math.min(c.lo, v);
      c.hi = Math.max(c.hi, v);
    }
  }
  const keys = [...cells.keys()].sort((a, b) => a - b);
  const line = emptyLine(keys.length);
  keys.forEach((key, i) => {
    const c = cells.get(key);
    if (!c) return;
    let sum = 0;
    for (const [total, n] of c.runs.values()) sum += total / n;
    line.x[i] = c.x / c.xs;
    line.y[i] = sum / c.runs.size;
    line.lo[i] = c.lo;
    line.hi[i] = c.hi;
    line.n[i] = c.runs.size;
  });
  line.marks = marks;
  line.members = series.length;
  line.thinned = thinned;
  return smoothing > 0 ? smooth(line, smoothing) : line;
}

// smooth is an exponential moving average over the line's own points, corrected for its start: the value at a step
// depends on the points before it alone, so it is the same at every zoom and width. Gaps are passed over.
export function smooth(line: Line, weight: number): Line {
  const raw = line.y;
  const y = new Float64Array(raw.length);
  let sum = 0;
  let norm = 0;
  for (let i = 0; i < raw.length; i++) {
    const v = raw[i] as number;
    if (!Number.isFinite(v)) {
      y[i] = NaN;
      continue;
    }
    sum = weight * sum + (1 - weight) * v;
    norm = weight * norm + (1 - weight);
    y[i] = sum / norm;
  }
  return { ...line, y, raw };
}

function emptyLine(n: number): Line {
  return {
    x: new Float64Array(n),
    y: new Float64Array(n),
    lo: new Float64Array(n),
    hi: new Float64Array(n),
    n: new Uint16Array(n),
    raw: null,
    marks: [],
    members: 0,
    thinned: false,
  };
}

function nameOf(v: number): string {
  return Number.isNaN(v) ? "NaN" : v > 0 ? "+Inf" : "−Inf";
}

// steady picks axis limits that grow in steps, so that a chart does not shiver with each point.
export function steady(low: number, high: number, zero: boolean, before: [number, number] | null): [number, number] {
  if (!(low <= high)) return before ?? [0, 1];
  if (zero && low > 0) low = 0;
  if (low === high) {
    const pad = Math.abs(high) * 0.1 || 1;
    if (!(zero && low === 0)) low -= pad;
    high += pad;
  }
  const step = niceStep((high - low) / 5);
  let from = Math.floor(low / step + 1e-9) * step;
  let to = Math.ceil(high / step - 1e-9) * step;
  if (before && before[0] <= low && before[1] >= high && before[1] - before[0] < 3 * (to - from)) {
    [from, to] = before;
  }
  return [from, to];
}

export function niceStep(rough: number): number {
  if (!(rough > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(rough));
  for (const m of [1, 2, 2.5, 5]) if (m * base >= rough * 0.999) return m * base;
  return 10 * base;
}
