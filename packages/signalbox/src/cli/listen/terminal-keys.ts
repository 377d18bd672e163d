/** Keys that the user presses, one by one. Does nothing unless standard input is a terminal. */

export type Key = "up" | "down" | "r" | "d" | "o" | "q";

const KEYS: Readonly<Record<string, Key>> = {
  "\u001b[A": "up",
  "\u001b[B": "down",
  // In the terminal's application mode.
  "\u001bOA": "up",
  "\u001bOB": "down",
  r: "r",
  d: "d",
  o: "o",
  q: "q",
  // In raw mode, Ctrl+C is a character.
  "\u0003": "q",
};

/** A key is one character, or what a terminal sends for an arrow. */
const KEY = new RegExp(String.raw`\u001b[[O][A-Z]|[^]`, "g");

/** Returns a function that restores the terminal; null without one. */
export function onKeys(press: (key: Key) => void): (() => void) | null {
  const { stdin } = process;
  if (!stdin.isTTY) return null;
  const read = (bytes: Buffer) => {
    // Keys that are pressed quickly arrive together.
    for (const text of bytes.toString().match(KEY) ?? []) {
      const key = KEYS[text];
      if (key !== undefined) press(key);
    }
  };
  stdin.setRawMode(true);
  stdin.resume();
  stdin.on("data", read);
  return () => {
    stdin.off("data", read);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
