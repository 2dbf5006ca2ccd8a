// New study page.
export function start(_root: HTMLElement): void {}
