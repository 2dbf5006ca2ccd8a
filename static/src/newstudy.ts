// New study page. The form works by posting; this script posts it as it changes and puts what the server
// answers in place: the whole form after a button, only the parts that are not being typed in otherwise.
// What counts as right is decided by the server alone.

const draftKey = "alidade:new-study";

interface Draft {
  at: number; // unix milliseconds
  fields: [string, string][];
}

export function start(root: HTMLElement): void {
  const form = root.querySelector<HTMLFormElement>("#study");
  if (form) new StudyForm(root, form);
}

class StudyForm {
  private serial = 0; // of the last request: older answers are dropped
  private timer = 0;
  private saved = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly form: HTMLFormElement,
  ) {
    form.dataset.scripted = "";
    root.querySelectorAll<HTMLElement>("[data-panes], [data-import]").forEach((e) => (e.hidden = false));
    this.ready();
    form.addEventListener("submit", (e) => this.submit(e));
    form.addEventListener("input", (e) => this.input(e));
    form.addEventListener("change", (e) => this.change(e));
    form.addEventListener("keydown", (e) => this.formKey(e));
    form.addEventListener("click", (e) => this.click(e));
    document.addEventListener("keydown", (e) => this.pageKey(e));
    document.addEventListener("click", (e) => {
      const picker = this.picker();
      if (picker?.open && !picker.contains(e.target as Node)) picker.open = false;
    });
    this.panes();
    this.imports();
    if (root.querySelector("[data-starting]")) void this.bringBack();
    setInterval(() => this.note(), 5000);
    addEventListener("resize", () => this.fits());
  }

  // ready sets up what a swap of the form replaces.
  private ready(): void {
    const find = this.form.querySelector<HTMLInputElement>("[data-picker-find]");
    if (find) find.hidden = false;
    this.picker()?.addEventListener("toggle", () => {
      if (!this.picker()?.open) return;
      this.form.querySelector<HTMLInputElement>("[data-picker-find]")?.focus({ preventScroll: true });
      const list = this.form.querySelector<HTMLElement>(".picker-list");
      const under = (list?.getBoundingClientRect().bottom ?? 0) - (innerHeight - 64);
      if (under > 0) scrollBy({ top: under });
    });
    this.fits();
  }

  private picker(): HTMLDetailsElement | null {
    return this.form.querySelector<HTMLDetailsElement>("#d-picker");
  }

  private fits(): void {
    const out = this.form.querySelector<HTMLElement>(".outlook");
    out?.toggleAttribute("data-fits", out.scrollHeight < innerHeight - 140);
  }

  // ---- talking to the server

  private async post(act: string, whole: boolean, extra?: (data: FormData) => void): Promise<boolean> {
    const mine = ++this.serial;
    const data = new FormData(this.form);
    data.delete("file");
    data.set("do", act);
    extra?.(data);
    try {
      const r = await fetch(this.form.action, { method: "POST", body: data, headers: { "X-Alidade-Part": "study" } });
      if (mine !== this.serial) return false;
      if (!r.ok && r.status !== 422) throw new Error(String(r.status));
      const doc = new DOMParser().parseFromString(`<form>${await r.text()}</form>`, "text/html");
      const fresh = doc.querySelector("form");
      if (!fresh || mine !== this.serial) return false;
      if (whole && r.ok) this.swap(fresh);
      else this.patch(fresh);
      this.keep();
      return r.ok;
    } catch {
      if (mine === this.serial) this.say("Not checked: the server could not be reached. What you typed is kept in this browser.");
      return false;
    }
  }

  // later checks once typing pauses.
  private later(act = "check", wait = 220): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.post(act, act !== "check"), wait);
  }

  // swap replaces the whole form and keeps folds, focus and place.
  private swap(fresh: HTMLFormElement): void {
    const open = new Map([...this.form.querySelectorAll<HTMLDetailsElement>("details[id]")].map((d) => [d.id, d.open]));
    const focus = document.activeElement as HTMLElement | null;
    const key = focus && this.form.contains(focus) ? this.pathOf(focus) : null;
    const y = scrollY;
    this.form.replaceChildren(...[...fresh.childNodes].map((n) => document.adoptNode(n)));
    for (const d of this.form.querySelectorAll<HTMLDetailsElement>("details[id]")) {
      const was = open.get(d.id);
      if (was !== undefined && d.id !== "d-picker") d.open = was || d.open;
    }
    this.ready();
    if (key) this.form.querySelector<HTMLElement>(key)?.focus({ preventScroll: true });
    scrollTo({ top: y });
  }

  private pathOf(el: HTMLElement): string | null {
    if (el.id) return `#${CSS.escape(el.id)}`;
    const name = el.getAttribute("name");
    if (name && name !== "do") return `[name="${CSS.escape(name)}"]`;
    return null;
  }

  // patch takes over everything that is not typed: problems, marks, estimate, launch bar, file.
  private patch(fresh: HTMLFormElement): void {
    for (const from of fresh.querySelectorAll<HTMLElement>("[data-live]")) {
      const to = this.form.querySelector<HTMLElement>(`[data-live="${from.dataset.live}"]`);
      if (to) to.replaceChildren(...[...from.childNodes].map((n) => document.adoptNode(n.cloneNode(true))));
    }
    const problems = new Map([...fresh.querySelectorAll<HTMLElement>("[data-problem]")].map((p) => [p.dataset.problem, p]));
    for (const to of this.form.querySelectorAll<HTMLElement>("[data-problem]")) {
      const from = problems.get(to.dataset.problem);
      const text = from?.textContent?.trim() ?? "";
      if ((to.textContent?.trim() ?? "") !== text) to.replaceChildren(...[...(from?.childNodes ?? [])].map((n) => document.adoptNode(n.cloneNode(true))));
      const input = to.dataset.problem ? this.form.querySelector(`[id="f-${to.dataset.problem}"], [id="base.${to.dataset.problem}"]`) : null;
      input?.setAttribute("aria-invalid", String(text !== ""));
    }
    for (const from of fresh.querySelectorAll<HTMLElement>("[data-field]")) {
      const to = this.form.querySelector<HTMLElement>(`[data-field="${from.dataset.field}"]`);
      to?.toggleAttribute("data-changed", from.hasAttribute("data-changed"));
    }
    const arms = fresh.querySelector<HTMLElement>("[data-arms]");
    const list = this.form.querySelector<HTMLElement>("[data-arms]");
    if (arms && list) list.hidden = arms.hidden;
    const file = fresh.querySelector<HTMLTextAreaElement>("[data-yaml]");
    const mine = this.form.querySelector<HTMLTextAreaElement>("[data-yaml]");
    if (file && mine && document.activeElement !== mine) mine.value = file.value;
    this.fits();
  }

  // ---- what the person does

  private submit(e: SubmitEvent): void {
    const button = e.submitter as HTMLButtonElement | null;
    const act = button?.value ?? "check";
    if (act === "launch") {
      if (button?.getAttribute("aria-disabled") === "true") {
        e.preventDefault();
        this.form.querySelector<HTMLElement>(".launch-problems a")?.focus();
        return;
      }
      button?.setAttribute("aria-disabled", "true"); // once
      setTimeout(() => button?.removeAttribute("aria-disabled"), 8000);
      this.forget();
      return; // posts as a page; the answer is the study or this form with its problems
    }
    if (act === "export") return;
    e.preventDefault();
    clearTimeout(this.timer);
    const typed = document.activeElement as HTMLElement | null;
    if (act === "check" && typed?.hasAttribute("data-add-level")) void this.post("levels", true);
    else void this.post(act, act !== "check").then(() => this.after(act));
  }

  // after puts the focus where the next move is likely.
  private after(act: string): void {
    if (act.startsWith("factor-add:")) {
      const adds = this.form.querySelectorAll<HTMLElement>("[data-add-level]");
      adds[adds.length - 1]?.focus();
    }
    if (act.startsWith("level-remove:")) {
      const at = act.split(":")[1];
      this.form.querySelector<HTMLElement>(`[name="f.${at}.add"]`)?.focus({ preventScroll: true });
    }
  }

  private input(e: Event): void {
    const t = e.target as HTMLInputElement;
    if (t.hasAttribute("data-picker-find")) return this.filterPicker(t.value);
    if (t.type === "radio" || t.tagName === "SELECT" || t.type === "file") return;
    if (t.hasAttribute("data-yaml")) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.fromFile(), 400);
      return;
    }
    if (t.hasAttribute("data-add-level")) {
      if (t.value.endsWith(",") && t.value.length > 1) void this.post("levels", true).then(() => this.form.querySelector<HTMLElement>(`[name="${CSS.escape(t.name)}"]`)?.focus());
      return;
    }
    this.later();
  }

  private change(e: Event): void {
    const t = e.target as HTMLInputElement;
    if (t.type === "file") return;
    if (t.name === "preset") void this.post(`preset:${t.value}`, true);
    else if (t.hasAttribute("data-add-level")) {
      if (t.value) void this.post("levels", true);
    } else if (t.type === "radio" || t.tagName === "SELECT") {
      // Some choices decide which other fields apply.
      const whole = /^base\.(trainer\.kind|reward\.kind|environment\.world)$/.test(t.name) || t.name === "metric";
      this.later(whole ? "levels" : "check", 0);
    }
  }

  private fromFile(): Promise<boolean> {
    const box = this.form.querySelector<HTMLTextAreaElement>("[data-yaml]");
    const text = box?.value ?? "";
    const from = box?.selectionStart ?? 0;
    return this.post("yaml", true).then((ok) => {
      const now = this.form.querySelector<HTMLTextAreaElement>("[data-yaml]");
      if (ok && now && now !== box) {
        now.value = text; // the words as typed; the form is in step
        now.focus({ preventScroll: true });
        now.setSelectionRange(from, from);
      }
      return ok;
    });
  }

  private click(e: Event): void {
    const link = (e.target as Element).closest<HTMLAnchorElement>(".launch a");
    const id = link?.hash.slice(1);
    const to = id ? document.getElementById(id) : null;
    if (!to) return;
    e.preventDefault();
    this.show("form");
    for (let d = to.closest("details"); d; d = d.parentElement?.closest("details") ?? null) d.open = true;
    to.scrollIntoView({ block: "center" });
    (to.matches("input, textarea, select") ? to : to.querySelector<HTMLElement>("input:not([type=hidden]), select, textarea"))?.focus({ preventScroll: true });
  }

  private formKey(e: KeyboardEvent): void {
    const t = e.target as HTMLElement;
    if (t.hasAttribute("data-picker-find")) return this.pickerKey(e);
    if (e.key === "Escape" && this.picker()?.open) {
      e.preventDefault();
      const p = this.picker();
      if (p) p.open = false;
      p?.querySelector("summary")?.focus();
      return;
    }
    // Backspace in an empty "+ level" box takes the last level off.
    if (e.key === "Backspace" && t.hasAttribute("data-add-level") && (t as HTMLInputElement).value === "" && t.tagName === "INPUT") {
      const gone = [...(t.closest(".factor")?.querySelectorAll<HTMLButtonElement>(".level button") ?? [])].pop();
      if (gone) {
        e.preventDefault();
        gone.click();
      }
    }
  }

  private pageKey(e: KeyboardEvent): void {
    if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) {
      const launch = this.form.querySelector<HTMLButtonElement>("[data-launch]");
      if (launch) {
        e.preventDefault();
        clearTimeout(this.timer);
        void this.post("check", false).then(() => this.form.querySelector<HTMLButtonElement>("[data-launch]")?.click());
      }
      return;
    }
    if (e.key !== "f" || e.metaKey || e.ctrlKey || e.altKey || e.defaultPrevented) return;
    const t = e.target as HTMLElement;
    const writes = t.matches("textarea, select") || (t.matches("input") && !/^(radio|checkbox)$/.test((t as HTMLInputElement).type) && (t as HTMLInputElement).inputMode !== "decimal");
    if (writes) return;
    const field = t.closest<HTMLElement>("[data-field]") ?? this.form.querySelector<HTMLElement>("[data-field]:hover");
    if (!field) return;
    e.preventDefault();
    void this.post(`factor-add:${field.dataset.field}`, true).then(() => this.after("factor-add:"));
  }

  // ---- the picker of recipe keys

  private filterPicker(words: string): void {
    const list = this.form.querySelector<HTMLElement>("[data-picker]");
    if (!list) return;
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    let any = false;
    for (const g of list.querySelectorAll<HTMLElement>(".picker-group")) {
      let some = false;
      for (const b of g.querySelectorAll<HTMLButtonElement>("button")) {
        const text = (b.dataset.find ?? "").toLowerCase();
        b.hidden = !parts.every((p) => text.includes(p));
        b.removeAttribute("data-at");
        some ||= !b.hidden;
      }
      g.hidden = !some;
      any ||= some;
    }
    const none = list.querySelector<HTMLElement>("[data-picker-none]");
    if (none) none.hidden = any;
    if (parts.length) list.querySelector("button:not([hidden])")?.setAttribute("data-at", "");
  }

  private pickerKey(e: KeyboardEvent): void {
    const all = [...this.form.querySelectorAll<HTMLButtonElement>("[data-picker] button:not([hidden])")].filter((b) => b.offsetParent);
    const at = all.findIndex((b) => b.hasAttribute("data-at"));
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      all[at]?.removeAttribute("data-at");
      const next = all[Math.min(Math.max(at + (e.key === "ArrowDown" ? 1 : -1), 0), all.length - 1)];
      next?.setAttribute("data-at", "");
      next?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter") {
      e.preventDefault();
      all[Math.max(at, 0)]?.click();
    } else if (e.key === "Escape") {
      e.preventDefault();
      const p = this.picker();
      if (p) p.open = false;
      p?.querySelector("summary")?.focus();
    }
  }

  // ---- form or file

  private panes(): void {
    const group = this.root.querySelector<HTMLElement>("[data-panes]");
    group?.addEventListener("click", (e) => {
      const b = (e.target as Element).closest<HTMLButtonElement>("button");
      if (b) this.show(b.value);
    });
  }

  private show(view: string): void {
    this.form.dataset.view = view;
    this.root.querySelectorAll<HTMLButtonElement>("[data-panes] button").forEach((b) => b.setAttribute("aria-pressed", String(b.value === view)));
    if (view === "file") this.form.querySelector<HTMLElement>("[data-yaml]")?.focus({ preventScroll: true });
  }

  private imports(): void {
    const file = this.root.querySelector<HTMLInputElement>("[data-file]");
    file?.addEventListener("change", () => {
      const f = file.files?.[0];
      if (!f) return;
      void f.text().then((text) => {
        const box = this.form.querySelector<HTMLTextAreaElement>("[data-yaml]");
        if (box) box.value = text;
        return this.post("yaml", true).then((ok) => {
          if (ok) this.say(`${f.name} fills the form. Nothing runs until you launch.`);
          else this.show("file");
          file.value = "";
        });
      });
    });
  }

  // ---- the draft in this browser

  private keep(): void {
    const fields: [string, string][] = [];
    for (const [k, v] of new FormData(this.form)) if (typeof v === "string" && k !== "yaml") fields.push([k, v]);
    try {
      localStorage.setItem(draftKey, JSON.stringify({ at: Date.now(), fields } satisfies Draft));
      this.saved = Date.now();
      this.note();
    } catch {
      // no storage here: the form itself still holds everything
    }
  }

  private forget(): void {
    try {
      localStorage.removeItem(draftKey);
    } catch {
      // nothing was kept
    }
  }

  private async bringBack(): Promise<void> {
    let draft: Draft;
    try {
      draft = JSON.parse(localStorage.getItem(draftKey) ?? "") as Draft;
      if (!Array.isArray(draft.fields) || Date.now() - draft.at > 30 * 86400e3) return;
    } catch {
      return;
    }
    const ok = await this.post("levels", true, (data) => {
      for (const k of [...data.keys()]) if (k !== "do") data.delete(k);
      for (const [k, v] of draft.fields) data.append(k, v);
    });
    if (!ok) return;
    const at = new Date(draft.at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
    this.say(`Draft of ${at} brought back. Nothing runs until you launch.`, true);
  }

  private note(): void {
    if (!this.saved) return;
    const s = Math.round((Date.now() - this.saved) / 1000);
    this.say(`Draft kept ${s < 5 ? "now" : s < 90 ? `${s} s ago` : `${Math.round(s / 60)} min ago`}. Nothing runs until you launch.`);
  }

  private say(text: string, fresh = false): void {
    const note = this.root.querySelector<HTMLElement>("[data-draft-note]");
    if (!note) return;
    note.textContent = text;
    if (!fresh) return;
    this.saved = 0;
    const link = document.createElement("a");
    link.href = "/studies/new?blank=1";
    link.textContent = "Start over";
    note.append(" ", link);
  }
}
