// Trajectories, groups and the other inspection pages.
export function start(_root: HTMLElement): void {}
