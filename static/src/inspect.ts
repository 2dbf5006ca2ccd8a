// Trajectories, one trajectory and one group. The pages work without script; this adds moving by
// keyboard, finding, unfolding and copying. Texts come from the page or the server and are only ever
// set as text.

import { onKey } from "./keys";
import { Live } from "./live";
import { refreshNow, refreshSoon } from "./region";
import { toast } from "./toast";

// start wires the page that root holds.
export function start(root: HTMLElement): void {
  const page = document.body.dataset.page;
  copyButtons(root);
  if (page === "trajectories") list(root);
  if (page === "trajectory") trajectory(root);
  if (page === "group") group(root);
  if (page === "devices") devices();
}

// devices are read again as runs come and go, and their load every 5 s.
function devices(): void {
  new Live({ frame: (f) => f.runs.length > 0 && refreshSoon(), stale: refreshSoon }).want({ study: 0, metrics: [] });
  window.setInterval(() => void refreshNow(), 5000);
}

// news counts rollouts that came in since the list was read. It says so at the top and moves nothing.
function news(root: HTMLElement): void {
  const link = root.querySelector<HTMLAnchorElement>("[data-new]");
  if (!link) return;
  const q = new URLSearchParams(location.search);
  const run = q.get("run");
  let count = 0;
  const tell = (): void => {
    link.hidden = count === 0;
    link.textContent = count === 1 ? "1 new" : `${count} new`;
  };
  new Live({
    frame: (f) => {
      for (const [id, n] of Object.entries(f.trajectories ?? {})) if (!run || id === run) count += n;
      tell();
    },
    stale: () => undefined,
  }).want({ study: Number(q.get("study") ?? 0), metrics: [] });
}

function onKeys(keys: Record<string, (e: KeyboardEvent) => void>): void {
  for (const [key, act] of Object.entries(keys)) {
    onKey(key, (e) => {
      e.preventDefault();
      act(e);
    });
  }
}

async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(done);
  } catch {
    toast("The browser does not allow copying here", undefined, true);
  }
}

function copyButtons(root: HTMLElement): void {
  root.addEventListener("click", (e) => {
    const at = (e.target as Element).closest<HTMLElement>("[data-copy-url], [data-copy-link]");
    if (!at || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    if (at.dataset.copyUrl) {
      void fetch(at.dataset.copyUrl)
        .then((r) => (r.ok ? r.text() : Promise.reject(new Error(String(r.status)))))
        .then((text) => copy(text, at.dataset.copied ?? "Copied"))
        .catch(() => toast("The server could not be reached; nothing was copied", undefined, true));
    } else {
      void copy(location.href, "Link copied");
    }
  });
}

// list: a changed filter is applied at once; rows are moved through as everywhere.
function list(root: HTMLElement): void {
  news(root);
  const form = root.querySelector<HTMLFormElement>("form[data-auto]");
  if (!form) return;
  form.querySelector<HTMLElement>("[data-apply]")?.classList.add("visually-hidden");
  const apply = () => {
    for (const f of form.elements) {
      const input = f as HTMLInputElement;
      if (input.name && input.value === "") input.disabled = true; // keep the address short
    }
    form.submit();
  };
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    apply();
  });
  form.addEventListener("change", (e) => {
    const t = e.target as HTMLInputElement;
    if (t.name === "study") form.querySelector<HTMLSelectElement>("[name=arm]")?.remove();
    apply();
  });
  addEventListener("pageshow", () => {
    for (const f of form.elements) (f as HTMLInputElement).disabled = false;
  });
  const fold = root.querySelector<HTMLButtonElement>("[data-fold]");
  if (fold) {
    fold.hidden = false;
    const set = (open: boolean) => {
      form.toggleAttribute("data-folded", !open);
      fold.setAttribute("aria-expanded", String(open));
    };
    set(false);
    fold.addEventListener("click", () => set(form.hasAttribute("data-folded")));
  }
}

// trajectory: turns by keyboard, folds, search within, whole turns on demand.
function trajectory(root: HTMLElement): void {
  const turns = () => [...root.querySelectorAll<HTMLDetailsElement>("details.turn")];
  if (turns().length === 0) return;
  let at = -1;

  const mark = (to: number, scroll: boolean) => {
    const all = turns();
    const turn = all[to];
    if (!turn) return;
    all[at]?.classList.remove("current");
    root.querySelectorAll(".strip-svg a.current").forEach((a) => a.classList.remove("current"));
    at = to;
    turn.classList.add("current");
    root.querySelectorAll(`.strip-svg a[data-strip-turn="${at + 1}"]`).forEach((a) => a.classList.add("current"));
    if (!scroll) return;
    const box = turn.getBoundingClientRect();
    if (box.top < 64 || box.bottom > innerHeight - 24) scrollBy({ top: box.top - Math.max(64, (innerHeight - box.height) / 3) });
    history.replaceState(history.state, "", `#${turn.id}`);
  };
  const fromHash = () => {
    const found = /^#t(\d+)$/.exec(location.hash);
    if (!found) return;
    const to = Number(found[1]) - 1;
    const turn = turns()[to];
    if (turn) turn.open = true;
    mark(to, false);
  };
  addEventListener("hashchange", fromHash);
  fromHash();

  const unfold = root.querySelector<HTMLButtonElement>("[data-unfold]");
  const all = () => {
    const open = turns().some((t) => !t.open);
    turns().forEach((t) => (t.open = open));
    if (unfold?.firstChild) unfold.firstChild.textContent = open ? "Fold all " : "Unfold all ";
  };
  if (unfold) {
    unfold.hidden = false;
    unfold.addEventListener("click", all);
  }
  onKeys({
    j: () => mark(at < 0 ? 0 : Math.min(at + 1, turns().length - 1), true),
    k: () => mark(at < 0 ? 0 : Math.max(at - 1, 0), true),
    o: all,
    y: () => void copy(location.href, at >= 0 ? `Link to turn ${at + 1} copied` : "Link copied"),
  });

  root.addEventListener("click", (e) => {
    const t = e.target as Element;
    const rows = t.closest<HTMLButtonElement>("[data-unfold-rows]");
    if (rows) {
      const body = rows.parentElement?.querySelector<HTMLElement>("tbody.folded");
      if (body) {
        body.hidden = !body.hidden;
        rows.setAttribute("aria-expanded", String(!body.hidden));
      }
      return;
    }
    const load = t.closest<HTMLAnchorElement>("[data-load-turn]");
    if (load) {
      e.preventDefault();
      void wholeTurn(load);
      return;
    }
    const turn = t.closest<HTMLDetailsElement>("details.turn");
    if (turn && t.closest("summary")) mark(turns().indexOf(turn), false);
  });
  finder(root, turns);
  fits(root);
}

// wholeTurn puts the complete turn in the place of one that was cut.
async function wholeTurn(link: HTMLAnchorElement): Promise<void> {
  try {
    const r = await fetch(link.href, { headers: { Accept: "text/html" } });
    if (!r.ok) throw new Error(String(r.status));
    const doc = new DOMParser().parseFromString(await r.text(), "text/html");
    const fresh = doc.querySelector("details.turn");
    const old = link.closest("details.turn");
    if (fresh && old) old.replaceWith(document.adoptNode(fresh));
  } catch {
    toast("This turn could not be read; the rest of the page is as it was", undefined, true);
  }
}

// finder filters turns to those that hold the words.
function finder(root: HTMLElement, turns: () => HTMLDetailsElement[]): void {
  const box = root.querySelector<HTMLInputElement>("[data-find-in]");
  if (!box) return;
  box.hidden = false;
  let wait = 0;
  const note = root.querySelector<HTMLElement>('[data-note="turns"]');
  const before = note?.textContent ?? "";
  box.addEventListener("input", () => {
    clearTimeout(wait);
    wait = window.setTimeout(() => {
      const words = box.value.trim().toLowerCase();
      let hits = 0;
      for (const turn of turns()) {
        const hit = words !== "" && (turn.textContent ?? "").toLowerCase().includes(words);
        turn.hidden = words !== "" && !hit;
        if (hit) {
          hits++;
          turn.open = true;
          turn.querySelectorAll<HTMLElement>("tbody.folded").forEach((b) => {
            if ((b.textContent ?? "").toLowerCase().includes(words)) b.hidden = false;
          });
        }
      }
      if (note) note.textContent = words === "" ? before : hits === 1 ? "1 turn holds it" : `${hits} turns hold it`;
    }, 120);
  });
  box.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    box.value = "";
    box.dispatchEvent(new Event("input"));
    box.blur();
  });
}

// fits makes the right column sticky only while it fits the window.
function fits(root: HTMLElement): void {
  const beside = root.querySelector<HTMLElement>(".beside");
  if (!beside) return;
  const set = () => beside.toggleAttribute("data-fits", beside.scrollHeight < innerHeight - 80);
  new ResizeObserver(set).observe(beside);
  addEventListener("resize", set);
}

// group: arrows move through the matrix, the reason line follows, Enter opens the item.
function group(root: HTMLElement): void {
  onKeys({ y: () => void copy(location.href, "Link copied") });
  const table = root.querySelector<HTMLTableElement>("[data-matrix]");
  const line = document.getElementById("reason");
  if (!table || !line) return;
  const grid = [...table.querySelectorAll("tr.verdicts")].map((tr) => [...tr.querySelectorAll<HTMLAnchorElement>("a.cell")]);
  let [y, x] = [0, 0];
  grid.forEach((row, i) => row.forEach((c, j) => c.classList.contains("selected") && ([y, x] = [i, j])));

  const open = line.querySelector<HTMLAnchorElement>("[data-open]") ?? document.createElement("a");
  const select = (i: number, j: number, focus: boolean) => {
    const cell = grid[i]?.[j];
    if (!cell) return;
    grid[y]?.[x]?.classList.remove("selected");
    [y, x] = [i, j];
    cell.classList.add("selected");
    const put = (name: string, text: string) => {
      const el = line.querySelector(`[data-${name}]`);
      if (el) el.textContent = text;
    };
    put("who", cell.dataset.who ?? "");
    put("head", cell.dataset.head ?? "");
    put("text", cell.dataset.text ?? "");
    open.href = cell.href;
    if (!open.isConnected) {
      open.textContent = "Open at that item";
      line.querySelector("p")?.append(" ", open);
    }
    if (focus) cell.focus({ preventScroll: false });
  };
  grid.forEach((row) => row.forEach((c) => (c.tabIndex = -1)));
  const first = grid[y]?.[x];
  if (first) first.tabIndex = 0;
  table.addEventListener("click", (e) => {
    const cell = (e.target as Element).closest<HTMLAnchorElement>("a.cell");
    if (!cell || e.ctrlKey || e.metaKey || e.shiftKey || e.detail === 0) return; // Enter opens
    e.preventDefault();
    grid.forEach((row, i) => {
      const j = row.indexOf(cell);
      if (j >= 0) select(i, j, true);
    });
  });
  table.addEventListener("dblclick", (e) => {
    const cell = (e.target as Element).closest<HTMLAnchorElement>("a.cell");
    if (cell) location.assign(cell.href);
  });
  const move = (dy: number, dx: number) => () => select(Math.min(Math.max(y + dy, 0), grid.length - 1), Math.min(Math.max(x + dx, 0), (grid[0]?.length ?? 1) - 1), true);
  onKeys({ ArrowLeft: move(0, -1), ArrowRight: move(0, 1), ArrowUp: move(-1, 0), ArrowDown: move(1, 0) });
}
