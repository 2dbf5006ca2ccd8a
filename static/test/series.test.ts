// Run by static_test.go: bundled by esbuild, executed by node's own test runner.
import assert from "node:assert/strict";
import { test } from "node:test";
import { byStep, cumulative, elapsed, lineOf, meanOf, steady } from "../src/aggregate";
import type { Series } from "../src/data";
import { insert, parseValue } from "../src/data";
import { axisValue, duration, fixed, metricValue } from "../src/format";
import { decode } from "../src/live";
import { parseFilter } from "../src/runfilter";
import { ruleMarks } from "../src/rule";

function series(run: number, values: number[], every = 1): Series {
  return { run, steps: values.map((_, i) => (i + 1) * every), walls: values.map((_, i) => 1000 * (i + 1)), values, total: values.length, thinned: false, attempt: 0 };
}

test("values of the API keep NaN and infinities", () => {
  assert.ok(Number.isNaN(parseValue("NaN")));
  assert.equal(parseValue("+Inf"), Infinity);
  assert.equal(parseValue("-Inf"), -Infinity);
  assert.equal(parseValue(0.5), 0.5);
});

test("a point that is there already changes nothing", () => {
  const s = series(1, [1, 2, NaN]);
  assert.equal(insert(s, 1, 2, 2000, 2), false);
  assert.equal(insert(s, 1, 3, 3000, NaN), false);
  assert.equal(insert(s, 1, 4, 4000, 4), true);
  assert.deepEqual(s.steps, [1, 2, 3, 4]);
  assert.equal(s.total, 4);
});

test("a later attempt replaces what came after its first step (C15)", () => {
  const s = series(1, [1, 2, 3, 4, 5, 6]);
  assert.equal(insert(s, 1, 7, 7000, 7), true);
  assert.equal(insert(s, 2, 4, 9000, 40), true);
  assert.deepEqual(s.steps, [1, 2, 3, 4]);
  assert.deepEqual(s.values, [1, 2, 3, 40]);
  assert.equal(insert(s, 2, 5, 9100, 50), true);
  assert.equal(insert(s, 1, 6, 6000, 6), false, "the first attempt is over");
  assert.deepEqual(s.values, [1, 2, 3, 40, 50]);
  assert.equal(s.total, 5);
});

test("NaN is one gap with one mark, and what follows goes on (C23)", () => {
  const l = lineOf(series(7, [1, 2, NaN, 4, Infinity, 6]), byStep, 0);
  assert.equal(l.y.length, 6);
  assert.ok(Number.isNaN(l.y[2]));
  assert.equal(l.y[5], 6);
  assert.deepEqual(l.marks, [{ x: 3, run: 7, what: "NaN" }, { x: 5, run: 7, what: "+Inf" }]);
  const smooth = lineOf(series(7, [1, 2, NaN, 4, 5]), byStep, 0.9);
  assert.ok(Number.isFinite(smooth.y[3] as number) && Number.isFinite(smooth.y[4] as number));
  assert.deepEqual([...(smooth.raw ?? [])].map(String), ["1", "2", "NaN", "4", "5"]);
});

test("a smoothed value depends on the points before it alone (C24)", () => {
  const values = Array.from({ length: 500 }, (_, i) => Math.sin(i / 9) + i / 100);
  const whole = lineOf(series(1, values), byStep, 0.9);
  const part = lineOf(series(1, values.slice(0, 120)), byStep, 0.9);
  for (let i = 0; i < 120; i++) assert.ok(Math.abs((whole.y[i] as number) - (part.y[i] as number)) < 1e-9);
});

test("a sparse metric is smoothed over its own points (C25)", () => {
  const values = [3, 1, 4, 1, 5, 9, 2, 6];
  assert.deepEqual([...lineOf(series(1, values, 50), byStep, 0.8).y], [...lineOf(series(1, values, 1), byStep, 0.8).y]);
});

test("a mean has its range and how many runs it rests on (C28)", () => {
  const l = meanOf([series(1, [1, 2, 3, 4]), series(2, [3, 4, NaN])], byStep, 0);
  assert.deepEqual([...l.x], [1, 2, 3, 4]);
  assert.deepEqual([...l.y], [2, 3, 3, 4]);
  assert.deepEqual([...l.lo], [1, 2, 3, 4]);
  assert.deepEqual([...l.hi], [3, 4, 3, 4]);
  assert.deepEqual([...l.n], [2, 2, 1, 1]);
  assert.equal(l.members, 2);
  assert.deepEqual(l.marks, [{ x: 3, run: 2, what: "NaN" }]);
});

test("thinned runs meet in buckets that keep lowest and highest (C26)", () => {
  const a = series(1, Array.from({ length: 3000 }, () => 1));
  const b = series(2, Array.from({ length: 3000 }, (_, i) => (i === 1234 ? 99 : 1)));
  a.thinned = b.thinned = true;
  const l = meanOf([a, b], byStep, 0);
  assert.ok(l.x.length <= 401 && l.thinned);
  assert.equal(Math.max(...l.hi), 99);
});

test("the axes agree on the order of points (C27)", () => {
  const s = series(4, [1, 2, 3]);
  const time = elapsed(new Map([[4, 500]]), 1);
  const tokens = cumulative(new Map([[4, series(4, [10, 20, 30])]]), new Map([[4, 2]]));
  const places = [byStep, time, tokens].map((axis) => s.steps.map((step, i) => axis.of(4, step, s.walls[i] as number)));
  assert.deepEqual(places, [[1, 2, 3], [0.5, 1.5, 2.5], [20, 60, 120]]);
});

test("axis limits grow in steps and do not shrink", () => {
  const first = steady(0.1, 0.9, true, null);
  assert.deepEqual(first, [0, 1]);
  assert.deepEqual(steady(0.1, 0.95, true, first), first);
  assert.ok(steady(0.1, 1.01, true, first)[1] > 1);
  assert.deepEqual(steady(NaN, NaN, true, null), [0, 1]);
  const flat = steady(5, 5, false, null);
  assert.ok(flat[0] < 5 && flat[1] > 5);
});

test("a frame is read as it was written", () => {
  const head = JSON.stringify({ seq: 9, n: 2, metrics: ["a", "b"] }).padEnd(40, " ");
  const buffer = new ArrayBuffer(8 + 40 + 2 * 28);
  const view = new DataView(buffer);
  view.setUint32(0, 1, true);
  view.setUint32(4, 40, true);
  new TextEncoder().encodeInto(head, new Uint8Array(buffer, 8, 40));
  view.setFloat64(48, NaN, true);
  view.setFloat64(56, 2.5, true);
  view.setUint32(48 + 32, 7, true);
  view.setUint32(48 + 40, 3, true);
  view.setUint16(48 + 48 + 2, 1, true);
  const f = decode(buffer);
  assert.equal(f.seq, 9);
  assert.deepEqual(f.metrics, ["a", "b"]);
  assert.ok(Number.isNaN(f.value[0]));
  assert.deepEqual([f.value[1], f.step[0], f.run[0], f.metric[1]], [2.5, 7, 3, 1]);
  view.setUint32(0, 2, true);
  assert.throws(() => decode(buffer));
});

test("the filter of the run table", () => {
  assert.deepEqual(parseFilter("status:failed, success>20 oom").clauses.map((c) => [c.key, c.op, c.text]), [["status", "is", "failed"], ["success", ">", "20"], ["", "is", "oom"]]);
  assert.equal(parseFilter("success>").problem, "");
  assert.notEqual(parseFilter("success>high").problem, "");
});

test("numbers and times in words", () => {
  assert.equal(fixed(-0.001, 2), "0.00");
  assert.equal(fixed(-1.25, 1), "−1.3");
  assert.equal(fixed(NaN, 1), "NaN");
  assert.equal(metricValue({ label: "", digits: 1, percent: true }, 0.276), "27.6");
  assert.equal(axisValue(25000, 5000), "25K");
  assert.equal(axisValue(0.25, 0.25), "0.25");
  assert.equal(duration(61 * 60), "61 min");
  assert.equal(duration(3 * 3600 + 60), "3 h 01");
  assert.equal(duration(-1), "–");
  assert.ok(ruleMarks(100, 300, 5, 3, 3).split("M").length < 40);
});
