export interface PaletteItem {
  readonly id: string;
  readonly title: string;
  /** What it is: a page, a gateway, an action. */
  readonly kind: string;
  /** Further words that find it. */
  readonly words?: string;
  /** Path below `/dashboard` to open. */
  readonly to?: string;
  readonly run?: () => void;
}

const MAX_SHOWN = 40;

/** The items that contain every word of the text; those whose title starts with it first. */
export function matchItems(items: readonly PaletteItem[], text: string): PaletteItem[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return items
    .map((item, place) => ({ item, place, rank: rankOf(item, words) }))
    .filter(({ rank }) => rank !== null)
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0) || a.place - b.place)
    .slice(0, MAX_SHOWN)
    .map(({ item }) => item);
}

/** Smaller is better; null if a word is missing. */
function rankOf({ title, kind, words: more = "" }: PaletteItem, words: readonly string[]): number | null {
  const name = title.toLowerCase();
  const all = `${name} ${kind.toLowerCase()} ${more}`;
  if (!words.every((word) => all.includes(word))) return null;
  const first = words[0];
  if (first === undefined || name === words.join(" ")) return 0;
  if (name.startsWith(first)) return 1;
  return words.every((word) => name.includes(word)) ? 2 : 3;
}
