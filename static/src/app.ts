// Entry: what every page has, then the module of the page.

import { startActions } from "./actions";
import { all, one } from "./dom";
import { startFinder } from "./finder";
import { ago } from "./format";
import * as home from "./home";
import * as inspect from "./inspect";
import { startKeys } from "./keys";
import * as newstudy from "./newstudy";
import * as run from "./run";
import * as study from "./study";
import { startTheme } from "./theme";

// Each page's module is started with the main element; data-page on the body says which.
const pages: Record<string, (root: HTMLElement) => void> = {
  home: home.start,
  studies: home.start,
  runs: home.start,
  study: study.start,
  run: run.start,
  newstudy: newstudy.start,
  trajectories: inspect.start,
  trajectory: inspect.start,
  group: inspect.start,
  datasets: (root) => {
    inspect.start(root);
    home.start(root);
  },
  devices: inspect.start,
  settings: inspect.start,
};

function startMenu(): void {
  document.addEventListener("click", (e) => {
    if (!(e.target instanceof Element)) return;
    const button = e.target.closest<HTMLElement>("[data-act='menu']");
    const bar = one(".bar");
    if (!button || !bar) return;
    const open = bar.toggleAttribute("data-open");
    button.setAttribute("aria-expanded", String(open));
  });
}

function tellTimes(): void {
  const now = Date.now();
  for (const node of all<HTMLTimeElement>("time[data-ago]")) {
    const at = Date.parse(node.dateTime);
    if (at) node.textContent = ago(at, now);
  }
}

startTheme();
startKeys();
startActions();
startFinder();
startMenu();
window.setInterval(tellTimes, 20_000);

const main = one("#main");
if (main) pages[document.body.dataset.page ?? ""]?.(main);
document.body.dataset.ready = "";
