// Forms that act: posted in the background, answered by a toast with the way back. Without script they are plain forms.

import { refreshOwn } from "./region";
import { toast } from "./toast";

async function post(address: string): Promise<string | null> {
  try {
    const answer = await fetch("/api/v1" + address, { method: "POST", credentials: "same-origin" });
    if (answer.ok) return null;
    const body = (await answer.json().catch(() => null)) as { error?: { message?: string; detail?: string } } | null;
    return [body?.error?.message, body?.error?.detail].filter(Boolean).join(": ") || "The server answered " + answer.status;
  } catch {
    return "The server cannot be reached";
  }
}

async function act(address: string, done: string, undo: string, reload = false): Promise<void> {
  const problem = await post(address);
  if (problem) {
    toast(problem, undefined, true);
    return;
  }
  if (reload) {
    sessionStorage.setItem("said", done);
    location.reload();
    return;
  }
  toast(done, undo ? () => act(undo, "Undone", "") : undefined);
  await refreshOwn();
}

export function startActions(): void {
  const said = sessionStorage.getItem("said");
  if (said) {
    sessionStorage.removeItem("said");
    toast(said);
  }
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (!(form instanceof HTMLFormElement) || !("action" in form.dataset)) return;
    e.preventDefault();
    const question = form.dataset.confirm;
    if (question && !window.confirm(question)) return;
    const button = form.querySelector("button");
    if (!button?.hasAttribute("aria-label")) button?.blur();
    form.closest("details")?.removeAttribute("open");
    void act(new URL(form.action).pathname, form.dataset.toast ?? "Done", form.dataset.undo ?? "", "reload" in form.dataset);
  });
  // a click beside an open menu closes it
  document.addEventListener("click", (e) => {
    for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
      if (e.target instanceof Node && !menu.contains(e.target)) menu.open = false;
    }
  });
}
