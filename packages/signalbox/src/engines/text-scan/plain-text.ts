/** A text as a person reads it, and where its characters stand in the text as it was written. */
import { toPlainText } from "./look-alikes.ts";

interface PlainText {
  readonly plain: string;
  /** Of each character of `plain`: where it begins and ends. */
  readonly from: readonly number[];
  readonly to: readonly number[];
}

export function readPlain(text: string): PlainText {
  let plain = "";
  const from: number[] = [];
  const to: number[] = [];
  let at = 0;
  for (const character of text) {
    const shown = toPlainText(character);
    for (let i = 0; i < shown.length; i++) {
      from.push(at);
      to.push(at + character.length);
    }
    plain += shown;
    at += character.length;
  }
  return { plain, from, to };
}
