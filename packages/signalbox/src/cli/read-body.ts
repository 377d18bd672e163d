/** Reads long responses piece by piece. */
import type { Output } from "./command.ts";

/** Copies the body to the output as it arrives. */
export async function copyBody(response: Response, out: Output): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) out.write(decoder.decode(chunk, { stream: true }));
  out.write(decoder.decode());
}

/** Yields the lines of the body without their ends. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
