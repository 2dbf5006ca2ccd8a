// The finder: studies, runs by number, and pages.

import { el } from "./dom";

interface Found {
  label: string;
  note: string;
  href: string;
}

const pages: Found[] = [
  ["Home", "/"], ["New study", "/studies/new"], ["Studies", "/studies"], ["Runs and queue", "/runs"], ["Trajectories", "/trajectories"], ["Datasets", "/datasets"], ["New dataset", "/datasets/new"], ["Import queries", "/datasets/import"],
  ["Devices", "/devices"], ["Reports", "/reports"], ["Settings", "/settings"],
].map(([label, href]) => ({ label: label ?? "", note: "page", href: href ?? "/" }));

interface StudyItem {
  id: number;
  study: { name: string; question?: string };
}

let studies: Promise<Found[]> | null = null;

async function readStudies(): Promise<Found[]> {
  const answer = await fetch("/api/v1/studies", { credentials: "same-origin" });
  if (!answer.ok) throw new Error("studies: " + answer.status);
  const body = (await answer.json()) as { studies: StudyItem[] };
  return body.studies.map((s) => ({ label: s.study.question || s.study.name, note: `S-${s.id} ${s.study.name}`, href: `/studies/${s.id}` }));
}

function candidates(text: string, list: Found[]): Found[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [...list, ...pages].filter((f) => {
    const where = (f.label + " " + f.note).toLowerCase();
    return words.every((w) => where.includes(w));
  });
  const run = /^(?:run\s*)?(\d+)$/i.exec(text.trim())?.[1];
  if (run) hits.unshift({ label: "Run " + run, note: "run", href: "/runs/" + run });
  const study = /^s-?(\d+)$/i.exec(text.trim())?.[1];
  if (study) hits.unshift({ label: "Study S-" + study, note: "study", href: "/studies/" + study });
  if (text.trim().length > 2) {
    hits.push({ label: `“${text.trim()}” in trajectories`, note: "text search", href: "/trajectories?q=" + encodeURIComponent(text.trim()) });
  }
  return hits.slice(0, 12);
}

export function openFinder(): void {
  if (document.querySelector("dialog.finder-panel")) return;
  const input = el("input", { class: "input", type: "search", placeholder: "Study, run number, page, or text in trajectories", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const list = el("ul", { class: "finder-list", role: "listbox" });
  const dialog = el("dialog", { class: "panel finder-panel", "aria-label": "Search" }, input, list);
  let known: Found[] = [];
  let at = 0;
  const draw = (): void => {
    const hits = candidates(input.value, known);
    at = Math.min(at, Math.max(0, hits.length - 1));
    list.replaceChildren(
      ...hits.map((h, i) =>
        el("li", { role: "option", "aria-selected": i === at ? "true" : "false" }, el("a", { href: h.href, tabindex: -1 }, h.label, el("span", { class: "caption" }, h.note))),
      ),
    );
    if (hits.length === 0) list.append(el("li", { class: "caption" }, "Nothing has this in its name."));
  };
  input.addEventListener("input", () => {
    at = 0;
    draw();
  });
  dialog.addEventListener("keydown", (e) => {
    const n = list.querySelectorAll("a").length;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      at = (at + (e.key === "ArrowDown" ? 1 : n - 1)) % Math.max(1, n);
      draw();
    } else if (e.key === "Enter") {
      e.preventDefault();
      list.querySelectorAll("a")[at]?.click();
    }
  });
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  draw();
  studies ??= readStudies();
  studies.then(
    (found) => {
      known = found;
      draw();
    },
    () => {
      studies = null;
      list.prepend(el("li", { class: "caption" }, "The list of studies could not be read."));
    },
  );
}

export function startFinder(): void {
  document.addEventListener("click", (e) => {
    if (e.target instanceof Element && e.target.closest("[data-act='find']")) openFinder();
  });
}
