// Toasts: what was done, for 8 s, with the way back.

import { el, one } from "./dom";

const shown = 8000;

let last: { undo: () => void; gone: number } | null = null;

export function toast(text: string, undo?: () => void | Promise<void>, bad = false): void {
  const host = one("#toasts");
  if (!host) return;
  const node = el("div", { class: bad ? "toast toast-bad" : "toast" }, el("span", {}, text));
  const remove = (): void => {
    window.clearTimeout(timer);
    node.remove();
    if (last?.undo === take) last = null;
  };
  const take = (): void => {
    remove();
    void undo?.();
  };
  if (undo) {
    const button = el("button", { class: "button button-quiet button-small", type: "button" }, "Undo ", el("kbd", {}, "⌘ z"));
    button.addEventListener("click", take);
    node.append(button);
    last = { undo: take, gone: performance.now() + shown };
  }
  host.append(node);
  let timer = window.setTimeout(remove, shown);
  node.addEventListener("pointerenter", () => window.clearTimeout(timer));
  node.addEventListener("pointerleave", () => (timer = window.setTimeout(remove, 3000)));
}

// undoLast takes back what the newest toast offers.
export function undoLast(): boolean {
  if (!last) return false;
  last.undo();
  return true;
}
