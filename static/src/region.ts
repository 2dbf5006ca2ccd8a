// Regions: parts of a page that the server writes and that are fetched again when something they show has changed.
// A region under the pointer or with the focus waits until it is left.

import { all, busy, one, throttle } from "./dom";

const least = 2000; // ms between two reads

let running = false;
let again = false; // the reader did something while a read was under way: it must show too

async function refresh(own = false): Promise<void> {
  missed = document.hidden;
  if (running) again ||= own;
  if (running || missed) return;
  running = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const node of all("[data-region]")) {
      const fresh = one(`[data-region="${node.dataset.region ?? ""}"]`, page);
      if (!fresh || fresh.innerHTML === node.innerHTML) continue;
      if (!own && busy(node)) {
        waiting.add(node);
        continue;
      }
      waiting.delete(node);
      const focus = node.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
      const current = one<HTMLElement>("tr.current", node)?.dataset.href;
      node.replaceChildren(...fresh.childNodes);
      if (current) one(`tr[data-href="${CSS.escape(current)}"]`, node)?.classList.add("current");
      if (focus) one(`[aria-label="${CSS.escape(focus)}"]`, node)?.focus();
      node.dispatchEvent(new CustomEvent("region", { bubbles: true }));
    }
    if (page.title) document.title = page.title;
  } catch {
    // the live line says that the server is away
  } finally {
    running = false;
  }
  if (again) {
    again = false;
    await refresh(true);
  }
}

const waiting = new Set<HTMLElement>();

let missed = false;

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && missed) refreshSoon();
});

document.addEventListener("pointerout", (e) => {
  for (const node of waiting) {
    if (!(e.relatedTarget instanceof Node && node.contains(e.relatedTarget))) {
      waiting.delete(node);
      refreshSoon();
    }
  }
});

// refreshSoon reads the page again, at most every two seconds.
export const refreshSoon = throttle(least, () => void refresh());

// refreshNow reads the page again without waiting its turn.
export function refreshNow(): Promise<void> {
  return refresh();
}

// refreshOwn shows what the reader has just done, also where the pointer is; the pressed button keeps the focus.
export function refreshOwn(): Promise<void> {
  return refresh(true);
}
