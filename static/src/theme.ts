// The theme: as the system says, light, or dark. Kept in a cookie so that the server writes it into the page.

import { toast } from "./toast";

export type Theme = "" | "light" | "dark";

export function cycleTheme(): void {
  const root = document.documentElement;
  const order: Theme[] = ["", "light", "dark"];
  const now = (root.dataset.theme ?? "") as Theme;
  const next = order[(order.indexOf(now) + 1) % order.length] ?? "";
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  document.cookie = "theme=" + next + ";path=/;samesite=lax;max-age=" + (next ? 31_536_000 : 0);
  document.dispatchEvent(new CustomEvent("theme"));
  toast("Theme: " + (next || "as the system"));
}

export function startTheme(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new CustomEvent("theme")));
  document.addEventListener("click", (e) => {
    if (e.target instanceof Element && e.target.closest("[data-act='theme']")) cycleTheme();
  });
}

// color resolves a token to what a canvas understands.
const probe = document.createElement("span");
let cache = new Map<string, string>();
document.addEventListener("theme", () => (cache = new Map()));

export function color(token: string): string {
  const known = cache.get(token);
  if (known) return known;
  if (!probe.isConnected) {
    probe.className = "visually-hidden";
    document.body.append(probe);
  }
  probe.style.color = `var(--${token})`;
  const value = getComputedStyle(probe).color;
  cache.set(token, value);
  return value;
}
