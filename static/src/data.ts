// The series that the page holds: read once, then kept current by frames. NaN and ±Inf are values like any other.

import type { Frame } from "./live";

export interface Series {
  run: number;
  steps: number[];
  walls: number[];
  values: number[];
  total: number;
  thinned: boolean;
  attempt: number; // that wrote the last point; 0 = not known, as after a read
}

interface Wire {
  series: { run: number; metric: string; total: number; thinned: boolean; steps: number[]; walls: number[]; values: (number | string)[] }[];
}

export function parseValue(v: number | string | null): number {
  if (typeof v === "number") return v;
  if (v === "+Inf") return Infinity;
  if (v === "-Inf") return -Infinity;
  return NaN;
}

// insert puts a point where it belongs. What a later attempt writes replaces what earlier ones wrote from that step on;
// a point that is there already changes nothing, so that frames may repeat what a read has brought.
export function insert(s: Series, attempt: number, step: number, wall: number, value: number): boolean {
  const n = s.steps.length;
  const lastStep = n > 0 ? (s.steps[n - 1] as number) : -1;
  if (n === 0 || step > lastStep) {
    if (attempt < s.attempt) return false;
    s.steps.push(step);
    s.walls.push(wall);
    s.values.push(value);
    s.attempt = attempt;
    s.total++;
    return true;
  }
  if (attempt < s.attempt) return false;
  const at = lowerBound(s.steps, step);
  const there = s.steps[at] === step;
  if (there && s.walls[at] === wall && Object.is(s.values[at], value)) return false;
  if (attempt === s.attempt && s.attempt !== 0) {
    if (there) {
      s.walls[at] = wall;
      s.values[at] = value;
    } else {
      s.steps.splice(at, 0, step);
      s.walls.splice(at, 0, wall);
      s.values.splice(at, 0, value);
      s.total++;
    }
    return true;
  }
  if (s.attempt === 0 && s.thinned && !there && wall <= (s.walls[n - 1] as number)) return false; // thinned away on the server
  s.total -= n - at - 1;
  for (const column of [s.steps, s.walls, s.values]) column.length = at;
  s.steps.push(step);
  s.walls.push(wall);
  s.values.push(value);
  s.attempt = attempt;
  return true;
}

export function lowerBound(sorted: ArrayLike<number>, x: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((sorted[mid] as number) < x) low = mid + 1;
    else high = mid;
  }
  return low;
}

const perRequest = 12; // metrics read at once

export class Data {
  private readonly byMetric = new Map<string, Map<number, Series>>();
  private readonly reading = new Set<string>();
  // exact asks for every point instead of a thinned series: smoothing needs them.
  exact = false;
  range: [number, number] | null = null;
  problem = "";

  constructor(
    private readonly address: string,
    private readonly runs: () => number[],
    private readonly points: () => number,
    private readonly changed: (metrics: Set<string>) => void,
  ) {}

  get(metric: string): Map<number, Series> | undefined {
    return this.byMetric.get(metric);
  }

  has(metric: string): boolean {
    return this.byMetric.has(metric);
  }

  names(): string[] {
    return [...this.byMetric.keys()];
  }

  // need reads the metrics that are not held yet.
  need(metrics: string[]): void {
    void this.read(metrics.filter((m) => !this.byMetric.has(m) && !this.reading.has(m)));
  }

  // reread reads everything again: after a gap, a zoom, or a change of exactness.
  reread(): void {
    void this.read([...this.byMetric.keys()]);
  }

  private async read(metrics: string[]): Promise<void> {
    for (let i = 0; i < metrics.length; i += perRequest) {
      const part = metrics.slice(i, i + perRequest);
      for (const m of part) this.reading.add(m);
      try {
        await this.fetchPart(part);
        this.problem = "";
      } catch (e) {
        this.problem = e instanceof Error ? e.message : String(e);
        window.setTimeout(() => this.need(part), 4000);
      } finally {
        for (const m of part) this.reading.delete(m);
        this.changed(new Set(part));
      }
    }
  }

  private async fetchPart(metrics: string[]): Promise<void> {
    const q = new URLSearchParams();
    for (const m of metrics) q.append("metric", m);
    q.set("points", this.exact ? "0" : String(this.points()));
    if (this.range) {
      q.set("from", String(Math.max(0, Math.floor(this.range[0]))));
      q.set("to", String(Math.max(1, Math.ceil(this.range[1]))));
    }
    const answer = await fetch(this.address + "?" + q.toString(), { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${metrics.join(", ")}`);
    const body = (await answer.json()) as Wire;
    for (const m of metrics) this.byMetric.set(m, new Map());
    for (const s of body.series) {
      this.byMetric.get(s.metric)?.set(s.run, {
        run: s.run,
        steps: s.steps,
        walls: s.walls,
        values: s.values.map(parseValue),
        total: s.total,
        thinned: s.thinned,
        attempt: 0,
      });
    }
  }

  // apply merges a frame and returns the metrics that it changed.
  apply(f: Frame): Set<string> {
    const touched = new Set<string>();
    const known = new Set(this.runs());
    for (let i = 0; i < f.n; i++) {
      const metric = f.metrics[f.metric[i] as number] as string;
      const run = f.run[i] as number;
      const series = this.byMetric.get(metric);
      if (!series || !known.has(run)) continue;
      let s = series.get(run);
      if (!s) {
        s = { run, steps: [], walls: [], values: [], total: 0, thinned: false, attempt: 0 };
        series.set(run, s);
      }
      if (insert(s, f.attempt[i] as number, f.step[i] as number, f.wall[i] as number, f.value[i] as number)) touched.add(metric);
    }
    return touched;
  }
}
