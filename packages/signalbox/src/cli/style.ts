/** Colours: on a terminal only, and not if `NO_COLOR` is set or the terminal has none. */
import type { Output } from "./command.ts";

const CODES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const;

export type Style = (name: keyof typeof CODES, text: string) => string;

export function styleOf(
  output: Pick<Output, "isTTY">,
  environment: Readonly<Record<string, string | undefined>>,
): Style {
  // https://no-color.org: any value that is not empty.
  const hasColours = output.isTTY === true && !environment["NO_COLOR"] && environment["TERM"] !== "dumb";
  return (name, text) => {
    const [start, end] = CODES[name];
    return hasColours ? `\u001b[${start}m${text}\u001b[${end}m` : text;
  };
}
