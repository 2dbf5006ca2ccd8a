import * as newstudy from "./newstudy";
import * as inspect from "./inspect";

// Each page's module is started with the main element; data-page on the body says which.
const pages: Record<string, (root: HTMLElement) => void> = {
  newstudy: newstudy.start,
  trajectories: inspect.start,
  trajectory: inspect.start,
  group: inspect.start,
};

const main = document.getElementById("main");
if (main) pages[document.body.dataset.page ?? ""]?.(main);
