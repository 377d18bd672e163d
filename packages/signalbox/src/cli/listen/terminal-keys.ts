/** Keys that the user presses, one by one. Does nothing unless standard input is a terminal. */

export type Key = "up" | "down" | "r" | "d" | "o" | "q";

const KEYS: Readonly<Record<string, Key>> = {
  "\u001b[A": "up",
  "\u001b[B": "down",
  r: "r",
  d: "d",
  o: "o",
  q: "q",
  // In raw mode, Ctrl+C is a character.
  "\u0003": "q",
};

/** Returns a function that restores the terminal; null without one. */
export function onKeys(press: (key: Key) => void): (() => void) | null {
  const { stdin } = process;
  if (!stdin.isTTY) return null;
  const read = (bytes: Buffer) => {
    const key = KEYS[bytes.toString()];
    if (key !== undefined) press(key);
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
