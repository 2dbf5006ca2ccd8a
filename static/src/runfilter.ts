// The filter of the run table: words and clauses, all of which must hold. "status:failed arm:SUM success>20 oom".

export interface Clause {
  key: string; // "" = anywhere
  op: "is" | "<" | ">" | "<=" | ">=";
  text: string;
  number: number;
}

export function parseFilter(text: string): { clauses: Clause[]; problem: string } {
  const clauses: Clause[] = [];
  for (const word of text.toLowerCase().split(/[\s,]+(?:and\s+)?/)) {
    if (word === "") continue;
    const m = /^([\w/.-]+)(<=|>=|<|>|:|=)(.*)$/.exec(word);
    if (!m) {
      clauses.push({ key: "", op: "is", text: word, number: NaN });
      continue;
    }
    const [, key = "", sign = ":", value = ""] = m;
    if (value === "") continue; // still being typed
    const op = sign === ":" || sign === "=" ? "is" : (sign as Clause["op"]);
    const number = Number(value.replace("−", "-").replace("%", ""));
    if (op !== "is" && Number.isNaN(number)) return { clauses: [], problem: `${word}: after ${sign} comes a number` };
    clauses.push({ key, op, text: value, number });
  }
  return { clauses, problem: "" };
}
