import { afterEach, beforeEach, expect, it, vi } from "vitest";

function storage(): Pick<Storage, "getItem" | "setItem"> {
  const items = new Map<string, string>();
  return { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => void items.set(key, value) };
}

let visits = 0;

/** The module as a page that is opened anew has it: another address makes Node evaluate the file again. */
async function load() {
  visits += 1;
  return (await import(`./series-color.ts?visit=${visits}`)) as typeof import("./series-color.ts");
}

beforeEach(() => void vi.stubGlobal("localStorage", storage()));
afterEach(() => void vi.unstubAllGlobals());

it("gives a name the same color in another order, on another page and at the next visit", async () => {
  const first = await load();
  first.assignColors(["openai", "mistral", "anthropic"]);
  const colors = ["openai", "mistral", "anthropic"].map((name) => first.colorClass({ name }));
  const next = await load();
  next.assignColors(["zebra", "mistral"]);
  expect(["openai", "mistral", "anthropic"].map((name) => next.colorClass({ name }))).toEqual(colors);
});

it("gives sixteen names sixteen colors, and a seventeenth one of them", async () => {
  const { colorClass } = await load();
  const names = Array.from({ length: 17 }, (_, i) => `model-${i}`);
  const colors = names.map((name) => colorClass({ name }));
  expect(new Set(colors.slice(0, 16)).size).toBe(16);
  expect(colors.slice(0, 16)).toContain(colors[16]);
});

it("keeps colors with a meaning and that of the rest, and ignores another stored text", async () => {
  localStorage.setItem("signalbox-colors", '{"a":99,"b":"x"}');
  const { colorClass } = await load();
  expect(colorClass({ name: "Errors", tone: "bad" })).toBe("color-bad");
  expect(colorClass({ name: "Other" })).toBe("color-other");
  expect(colorClass({ name: "a" })).toMatch(/^color-[1-8]( color-light)?$/);
});
