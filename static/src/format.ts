// Numbers and times as the pages write them; the server's text.go writes the same.

export interface MetricInfo {
  label: string;
  unit?: string;
  percent?: boolean;
  zero?: boolean;
  line?: boolean;
  digits: number;
}

export function fixed(x: number, digits: number): string {
  if (Number.isNaN(x)) return "NaN";
  if (x === Infinity) return "+Inf";
  if (x === -Infinity) return "−Inf";
  const s = x.toFixed(digits);
  if (!s.startsWith("-")) return s;
  return /[1-9]/.test(s) ? "−" + s.slice(1) : s.slice(1);
}

export function metricValue(info: MetricInfo, x: number): string {
  return fixed(info.percent ? x * 100 : x, info.digits);
}

export function unitOf(info: MetricInfo): string {
  return info.percent ? "%" : (info.unit ?? "");
}

// axisValue writes a tick with as many decimals as its step needs.
export function axisValue(x: number, step: number): string {
  if (x !== 0 && (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-4)) return x.toExponential(0).replace("-", "−").replace("e+", "e");
  if (Math.abs(x) >= 1e4 && step >= 1000) return fixed(x / 1000, step % 1000 === 0 ? 0 : 1) + "K";
  let digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const scaled = step * 10 ** digits;
  if (digits < 6 && Math.abs(scaled - Math.round(scaled)) > 1e-6) digits++; // a step of 0.25 needs two
  return fixed(x, digits);
}

export function clock(t: Date): string {
  return t.toLocaleTimeString("en-GB", { hour12: false });
}

export function count(n: number, one: string, many: string): string {
  return n === 1 ? "1 " + one : group(n) + " " + many;
}

export function group(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function ago(then: number, now: number): string {
  const s = (now - then) / 1000;
  if (s < 45) return "now";
  if (s < 5400) return Math.round(s / 60) + " min ago";
  if (s < 86400) return Math.round(s / 3600) + " h ago";
  const d = new Date(then);
  const text = d.getDate() + " " + d.toLocaleString("en-GB", { month: "short" });
  return d.getFullYear() === new Date(now).getFullYear() ? text : text + " " + d.getFullYear();
}

export function duration(seconds: number): string {
  if (!(seconds >= 0)) return "–";
  if (seconds < 90) return Math.round(seconds) + " s";
  const m = Math.round(seconds / 60);
  if (m < 90) return m + " min";
  if (m < 48 * 60) return Math.floor(m / 60) + " h " + String(m % 60).padStart(2, "0");
  return Math.round(m / 1440) + " days";
}
