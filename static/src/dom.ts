// Small helpers over the DOM. Text always becomes text nodes: nothing in this product parses a string as HTML,
// except pages of our own server in region.ts.

export type Attrs = Record<string, string | number | boolean | undefined>;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attrs: Attrs = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  setAttrs(node, attrs);
  node.append(...children);
  return node;
}

export function svg(tag: string, attrs: Attrs = {}, ...children: Node[]): SVGElement {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttrs(node, attrs);
  node.append(...children);
  return node;
}

function setAttrs(node: Element, attrs: Attrs): void {
  for (const [name, value] of Object.entries(attrs)) {
    if (value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

export function icon(name: string): SVGElement {
  return svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: "#icon-" + name }));
}

export function status(kind: string, word: string): HTMLElement {
  const off = ["queue", "pause", "stop", "lost"].includes(kind);
  const tone = off ? "off" : kind;
  return el("span", { class: "status status-" + tone }, icon(kind), word);
}

export function one<T extends Element = HTMLElement>(selector: string, root: ParentNode = document): T | null {
  return root.querySelector<T>(selector);
}

export function all<T extends Element = HTMLElement>(selector: string, root: ParentNode = document): T[] {
  return [...root.querySelectorAll<T>(selector)];
}

// readJSON returns what a data block of the page holds.
export function readJSON<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? (JSON.parse(text) as T) : null;
}

// typing holds while keys go into a field.
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

// busy holds while the pointer or the focus is in the element: what is being read does not move.
export function busy(node: Element): boolean {
  return node.matches(":hover") || node.contains(document.activeElement);
}

// setQuery keeps the state of a view in the address without a new history entry.
export function setQuery(changes: Record<string, string | null>): void {
  const url = new URL(location.href);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") url.searchParams.delete(key);
    else url.searchParams.set(key, value);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}

export function query(key: string): string | null {
  return new URLSearchParams(location.search).get(key);
}

// throttle runs fn at most once per ms, the last call included.
export function throttle(ms: number, fn: () => void): () => void {
  let due = 0;
  let last = 0;
  return () => {
    if (due) return;
    const wait = Math.max(0, last + ms - performance.now());
    due = window.setTimeout(() => {
      due = 0;
      last = performance.now();
      fn();
    }, wait);
  };
}
