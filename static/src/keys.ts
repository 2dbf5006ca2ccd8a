// The keyboard: single keys and g-sequences, rows, help.

import { all, el, one, typing } from "./dom";
import { undoLast } from "./toast";
import { cycleTheme } from "./theme";
import { openFinder } from "./finder";

const pages: Record<string, string> = { h: "/", s: "/studies", q: "/runs", t: "/trajectories", a: "/datasets", d: "/devices", r: "/reports" };

const help: [string[], string][] = [
  [["/"], "search"],
  [["j", "k"], "next, previous row"],
  [["↵"], "open the row"],
  [["g", "h"], "home"],
  [["g", "s"], "studies"],
  [["g", "q"], "runs and the queue"],
  [["g", "t"], "trajectories"],
  [["g", "a"], "datasets"],
  [["g", "d"], "devices"],
  [["g", "r"], "reports"],
  [["n"], "new study"],
  [["r"], "report of this study"],
  [["f"], "chart under the pointer: full screen"],
  [["y"], "copy the address of this view"],
  [["t"], "theme: as the system, light, dark"],
  [["⌘ z"], "undo what the toast says"],
  [["esc"], "close, back out"],
  [["?"], "this list"],
];

const handlers = new Map<string, (e: KeyboardEvent) => void>();

// onKey lets a page answer a single key.
export function onKey(key: string, fn: (e: KeyboardEvent) => void): void {
  handlers.set(key, fn);
}

let sequence = 0;

function off(): boolean {
  return localStorage.getItem("keys") === "off";
}

function press(e: KeyboardEvent): void {
  if ((e.metaKey || e.ctrlKey) && e.key === "z" && !typing(e.target)) {
    if (undoLast()) e.preventDefault();
    return;
  }
  if (e.metaKey || e.ctrlKey || e.altKey || e.defaultPrevented) return;
  if (e.key === "Escape") {
    const dialog = one<HTMLDialogElement>("dialog[open]");
    if (dialog) {
      e.preventDefault();
      dialog.close();
      return;
    }
    handlers.get("Escape")?.(e);
    closeAll();
    return;
  }
  if (typing(e.target) || off() || document.querySelector("dialog[open]")) return;
  if (sequence && performance.now() - sequence < 1200) {
    sequence = 0;
    const to = pages[e.key];
    if (to) {
      e.preventDefault();
      location.assign(to);
    }
    return;
  }
  const own = handlers.get(e.key);
  if (own) {
    own(e);
    if (e.defaultPrevented) return;
  }
  switch (e.key) {
    case "g":
      sequence = performance.now();
      break;
    case "/":
      e.preventDefault();
      openFinder();
      break;
    case "?":
      openHelp();
      break;
    case "t":
      cycleTheme();
      break;
    case "y":
      void navigator.clipboard?.writeText(location.href);
      break;
    case "j":
    case "k":
      move(e.key === "j" ? 1 : -1);
      break;
    case "Enter":
      openRow(e);
      break;
    default: {
      const target = one<HTMLElement>(`[data-key="${CSS.escape(e.key)}"]`);
      if (target) {
        e.preventDefault();
        target.click();
      }
    }
  }
}

function rows(): HTMLElement[] {
  return all("[data-rows] tr[data-href]").filter((r) => r.offsetParent !== null);
}

function move(by: number): void {
  const list = rows();
  if (list.length === 0) return;
  const at = list.findIndex((r) => r.classList.contains("current"));
  const next = list[Math.min(list.length - 1, Math.max(0, at + by))];
  for (const r of list) r.classList.toggle("current", r === next);
  next?.scrollIntoView({ block: "nearest" });
}

function openRow(e: KeyboardEvent): void {
  if (e.target instanceof HTMLElement && e.target.closest("a,button,summary")) return;
  const href = rows().find((r) => r.classList.contains("current"))?.dataset.href;
  if (href) location.assign(href);
}

function closeAll(): void {
  for (const m of all<HTMLDetailsElement>("details.menu[open]")) m.open = false;
  for (const r of rows()) r.classList.remove("current");
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

function openHelp(): void {
  const list = el("dl", { class: "key-list" });
  for (const [keys, what] of help) {
    list.append(el("div", {}, el("dt", {}, ...keys.map((k) => el("kbd", {}, k))), el("dd", {}, what)));
  }
  const toggle = el("input", { type: "checkbox" });
  toggle.checked = !off();
  toggle.addEventListener("change", () => localStorage.setItem("keys", toggle.checked ? "on" : "off"));
  const dialog = el(
    "dialog",
    { class: "panel", "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    list,
    el("label", { class: "check small quiet" }, toggle, "single keys work"),
  );
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  dialog.showModal();
}

export function startKeys(): void {
  document.addEventListener("keydown", press);
  // the whole row of a table opens what it is about, links and marked text excepted
  document.addEventListener("click", (e) => {
    if (!(e.target instanceof Element) || e.defaultPrevented) return;
    if (e.target.closest("[data-act='keys']")) return openHelp();
    if (e.target.closest("a,button,input,select,label,summary,details")) return;
    const href = e.target.closest<HTMLElement>("[data-rows] tr[data-href]")?.dataset.href;
    if (!href || String(getSelection()) !== "") return;
    if (e.metaKey || e.ctrlKey) window.open(href, "_blank", "noopener");
    else location.assign(href);
  });
}
