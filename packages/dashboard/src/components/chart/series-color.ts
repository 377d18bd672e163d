/**
 * The color of a provider, a model or any other name in charts.
 *
 * Invariants:
 * 1. A name has the same color on every page and at the next visit: colors are stored in this browser.
 * 2. Two names have different colors while there are fewer names than colors.
 * 3. The stored text contains names and numbers only; another text is ignored.
 */
import type { Series } from "./series.ts";

/** Eight hues that people with a color vision deficiency can tell apart, each full and light; see tokens.css. */
const HUES = 8;
const COLORS = 2 * HUES;
const KEY = "signalbox-colors";
const MAX_NAMES = 200;
/** The series that adds up the rest. */
export const OTHER = "Other";

/** Hues of the providers that most accounts use: they are far apart. */
const KNOWN: Readonly<Record<string, number>> = {
  openai: 2,
  anthropic: 1,
  "google-ai-studio": 0,
  mistral: 6,
  groq: 3,
  echo: 4,
  deepseek: 5,
  "azure-openai": 10,
  "google-vertex-ai": 8,
  "aws-bedrock": 9,
};

let assigned: Map<string, number> | null = null;

/** CSS classes for the marks of a series. */
export function colorClass({ name, tone }: Pick<Series, "name" | "tone">): string {
  if (tone !== undefined) return `color-${tone}`;
  if (name === OTHER) return "color-other";
  const color = colorOf(name);
  return color < HUES ? `color-${color + 1}` : `color-${color - HUES + 1} color-light`;
}

/** Assigns colors in the order of names, so that the order in which a chart lists them does not matter. */
export function assignColors(names: readonly string[]): void {
  for (const name of [...names].sort()) if (name !== OTHER) colorOf(name);
}

function colorOf(name: string): number {
  assigned ??= readColors();
  const known = assigned.get(name);
  if (known !== undefined) return known;
  const used = new Set(assigned.values());
  const preferred = KNOWN[name] ?? hash(name) % HUES;
  // The full hues first: they are easier to tell apart than a hue and its light form. Steps of three, because neighbours are similar.
  const order = Array.from({ length: COLORS }, (_, i) =>
    i < HUES ? (preferred + 3 * i) % HUES : HUES + ((preferred + 3 * i) % HUES),
  );
  const color = [preferred, ...order].find((one) => !used.has(one)) ?? preferred;
  if (assigned.size < MAX_NAMES) {
    assigned.set(name, color);
    storeColors(assigned);
  }
  return color;
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

function readColors(): Map<string, number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const entries = Object.entries(stored as object).filter(
      (entry): entry is [string, number] =>
        Number.isInteger(entry[1]) && Number(entry[1]) >= 0 && Number(entry[1]) < COLORS,
    );
    return new Map(entries.slice(0, MAX_NAMES));
  } catch {
    // The browser may block storage.
    return new Map();
  }
}

function storeColors(colors: ReadonlyMap<string, number>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(colors)));
  } catch {
    // The browser may block storage; the colors then last until the page is reloaded.
  }
}
