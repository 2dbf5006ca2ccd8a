// The graduated rule, moved in place. The server draws it (NewRule in components.go).

import { one } from "./dom";

export function moveRule(rule: SVGElement, now: number, total: number): void {
  const width = Number(rule.getAttribute("viewBox")?.split(" ")[2]);
  if (!(width > 0) || !(total > 0)) return;
  const x = Math.round(Math.min(1, now / total) * width * 10) / 10;
  one<SVGElement>(".done", rule)?.setAttribute("d", `M0 13H${x}`);
  one<SVGElement>(".now", rule)?.setAttribute("d", `M${x} 15l-3.5 5h7z`);
  rule.setAttribute("aria-label", `step ${now} of ${total}`);
  rule.classList.remove("rule-off");
}

// marks draws the marks of a rule as one path: one each `every`, at least 3 px apart.
export function ruleMarks(width: number, total: number, every: number, height: number, gap: number): string {
  if (!(every > 0) || !(total > 0)) return "";
  while ((every / total) * width < gap) every *= 2;
  let d = "";
  for (let u = 0; u < total; u += every) d += `M${Math.round((u / total) * width * 10) / 10} 13v-${height}`;
  return d + `M${width} 13v-${height}`;
}
