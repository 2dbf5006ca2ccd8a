// The websocket: one subscription a page, frames in order, resume after a gap.

import { clock } from "./format";
import { one } from "./dom";

export interface LiveRun {
  id: number;
  study: number;
  arm: number;
  state: string;
  cause?: string;
  phase?: string;
  step: number;
  total: number;
  attempt: number;
  device?: string;
  started?: number;
  ended?: number;
}

export interface Frame {
  seq: number;
  n: number;
  metrics: string[];
  runs: LiveRun[];
  alerts: unknown[];
  evaluations: { run: number; step: number; policy: string; mode: string }[];
  trajectories: Record<string, number>;
  value: Float64Array;
  wall: Float64Array;
  step: Uint32Array;
  run: Uint32Array;
  metric: Uint16Array;
  attempt: Uint16Array;
}

export interface Subscription {
  study: number;
  runs?: number[];
  metrics: string[];
}

export interface Listener {
  frame(f: Frame): void;
  // stale tells that frames were missed: what is shown must be read again.
  stale(): void;
}

interface Control {
  type: "subscribed" | "reset" | "tick" | "error";
  epoch: string;
  seq: number;
  resumed?: boolean;
  text?: string;
}

const silence = 13_000; // the server says something every 5 s

// decode reads a binary frame; the layout is described at encodeFrame in hub_frame.go.
export function decode(buffer: ArrayBuffer): Frame {
  const words = new DataView(buffer);
  if (words.getUint32(0, true) !== 1) throw new Error("unknown frame version");
  const headLength = words.getUint32(4, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, headLength))) as Partial<Frame>;
  const n = head.n ?? 0;
  const at = 8 + headLength;
  return {
    seq: head.seq ?? 0,
    n,
    metrics: head.metrics ?? [],
    runs: head.runs ?? [],
    alerts: head.alerts ?? [],
    evaluations: head.evaluations ?? [],
    trajectories: head.trajectories ?? {},
    value: new Float64Array(buffer, at, n),
    wall: new Float64Array(buffer, at + 8 * n, n),
    step: new Uint32Array(buffer, at + 16 * n, n),
    run: new Uint32Array(buffer, at + 20 * n, n),
    metric: new Uint16Array(buffer, at + 24 * n, n),
    attempt: new Uint16Array(buffer, at + 26 * n, n),
  };
}

export class Live {
  private socket: WebSocket | null = null;
  private sub: Subscription | null = null;
  private sent = "";
  private epoch = "";
  private seq = 0;
  private tries = 0;
  private heard = 0;
  private retry = 0;

  constructor(private readonly listener: Listener) {
    window.setInterval(() => this.watch(), 2000);
    addEventListener("online", () => this.connect());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && !this.socket) this.connect();
    });
  }

  // want sets what the page shows; the same again costs nothing.
  want(sub: Subscription): void {
    this.sub = sub;
    if (this.socket?.readyState === WebSocket.OPEN) this.subscribe();
    else this.connect();
  }

  private subscribe(): void {
    if (!this.sub || !this.socket) return;
    const text = JSON.stringify({ ...this.sub, metrics: [...this.sub.metrics].sort() });
    if (text === this.sent) return;
    this.sent = text;
    this.socket.send(JSON.stringify({ type: "subscribe", ...this.sub, epoch: this.epoch, since: this.seq }));
  }

  private connect(): void {
    if (this.socket || !this.sub) return;
    window.clearTimeout(this.retry);
    const url = (location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/ws";
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.sent = "";
    this.heard = performance.now();
    socket.onopen = () => this.subscribe();
    socket.onmessage = (e: MessageEvent<ArrayBuffer | string>) => this.receive(e.data);
    socket.onclose = () => this.lost(socket);
  }

  private receive(data: ArrayBuffer | string): void {
    this.heard = performance.now();
    this.tries = 0;
    if (typeof data !== "string") {
      const frame = decode(data);
      this.seq = frame.seq;
      this.listener.frame(frame);
      return;
    }
    const m = JSON.parse(data) as Control;
    switch (m.type) {
      case "subscribed": {
        const first = this.epoch === "";
        if (m.epoch !== this.epoch || !m.resumed) {
          this.epoch = m.epoch;
          if (!first) this.listener.stale();
        }
        this.seq = m.seq;
        this.show("live", "Live");
        break;
      }
      case "reset":
        this.seq = m.seq;
        this.listener.stale();
        break;
      case "tick":
        this.seq = m.seq;
        break;
      case "error":
        console.warn("live: " + (m.text ?? ""));
    }
  }

  private lost(socket: WebSocket): void {
    if (this.socket !== socket) return;
    this.socket = null;
    this.show("stale", "Not live since " + clock(new Date()));
    this.tries++;
    const wait = Math.min(10_000, 400 * 2 ** Math.min(this.tries, 5)) * (0.75 + Math.random() / 2);
    this.retry = window.setTimeout(() => this.connect(), wait);
  }

  // watch ends a line that has gone silent: a sleeping machine or a proxy may leave it half open.
  private watch(): void {
    if (!this.socket || performance.now() - this.heard < silence) return;
    const socket = this.socket;
    socket.onclose = null;
    socket.close();
    this.lost(socket);
  }

  private show(state: string, text: string): void {
    const node = one("#link-state");
    if (!node) return;
    // The first loss is when it happened; later attempts do not move it.
    if (state === "stale" && node.dataset.state === "stale") return;
    node.dataset.state = state;
    node.textContent = text;
  }
}
