// Arm marks: colour, marker and dash always together, the same as the server's (components.go).

import { color } from "./theme";
import { svg } from "./dom";

export interface Arm {
  index: number;
  label: string;
  short: string;
  color: number;
  marker: number;
  dash: number;
  facet: number;
}

const dashes: number[][] = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 2, 1, 2, 1, 2], [1, 3], [10, 2, 4, 2]];

const around = (n: number): number => (Math.max(1, n) - 1) % 8;

export function armColor(arm: Arm): string {
  return color("arm-" + (around(arm.color) + 1));
}

export function armDash(arm: Arm): number[] {
  return dashes[around(arm.dash)] ?? [];
}

// markerPath draws marker n of radius r around (x, y) as SVG path data; Path2D takes the same.
export function markerPath(n: number, x: number, y: number, r: number): string {
  const f = (v: number): string => String(Math.round(v * 100) / 100);
  const lines = (points: [number, number][]): string => "M" + points.map(([a, b]) => `${f(x + a)} ${f(y + b)}`).join("L") + "z";
  switch (around(n)) {
    case 1:
      return lines([[-0.92 * r, -0.92 * r], [0.92 * r, -0.92 * r], [0.92 * r, 0.92 * r], [-0.92 * r, 0.92 * r]]);
    case 2:
      return lines([[0, -1.2 * r], [1.2 * r, 0.96 * r], [-1.2 * r, 0.96 * r]]);
    case 3:
      return lines([[0, -1.25 * r], [1.25 * r, 0], [0, 1.25 * r], [-1.25 * r, 0]]);
    case 4:
      return lines([[0, 1.2 * r], [1.2 * r, -0.96 * r], [-1.2 * r, -0.96 * r]]);
    case 5: {
      const a = 1.05 * r;
      const b = 0.4 * r;
      return lines([[-a, -a + b], [-a + b, -a], [0, -b], [a - b, -a], [a, -a + b], [b, 0], [a, a - b], [a - b, a], [0, b], [-a + b, a], [-a, a - b], [-b, 0]]);
    }
    case 6: {
      const a = 1.15 * r;
      const b = 0.42 * r;
      return lines([[-b, -a], [b, -a], [b, -b], [a, -b], [a, b], [b, b], [b, a], [-b, a], [-b, b], [-a, b], [-a, -b], [-b, -b]]);
    }
    case 7:
      return lines([[0, -1.15 * r], [r, -0.575 * r], [r, 0.575 * r], [0, 1.15 * r], [-r, 0.575 * r], [-r, -0.575 * r]]);
  }
  return `M${f(x - r)} ${f(y)}a${f(r)} ${f(r)} 0 1 0 ${f(2 * r)} 0a${f(r)} ${f(r)} 0 1 0 ${f(-2 * r)} 0z`;
}

export function markSVG(arm: Arm): SVGElement {
  return svg(
    "svg",
    { class: `mark arm-${around(arm.color) + 1}`, width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
    svg("path", { class: `dash-${around(arm.dash) + 1}`, d: "M0 6h26" }),
    svg("path", { class: "marker", d: markerPath(arm.marker, 13, 6, 3.4) }),
  );
}
