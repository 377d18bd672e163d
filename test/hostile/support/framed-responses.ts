/** Asks a program for a response with a wrong length, and the server for another one behind it on the same connection. */
import { RawSocket } from "../../support/raw-socket.ts";
import { readResponses } from "./read-responses.ts";

const INJECTED = "abcHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nEVIL!";

/** Title, what the program says, and its body; null: none. */
export const WRONG_LENGTHS: readonly (readonly [string, number, string | null])[] = [
  ["a body that is longer than its length", 3, INJECTED],
  ["a body that is shorter than its length", 1000, "abc"],
  ["no body and a length", 1000, null],
];

/** The bodies of both responses. */
export async function exchangeFramed(
  url: string,
  path: string,
  [, length, body]: (typeof WRONG_LENGTHS)[number],
  headers = "",
): Promise<string[]> {
  const query = new URLSearchParams({ length: String(length), ...(body === null ? {} : { body }) });
  const raw = new RawSocket(url);
  raw.write(
    `GET ${path}?${String(query)} HTTP/1.1\r\nhost: x\r\n${headers}\r\n` +
      "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
  );
  await raw.closed();
  const { responses, rest } = readResponses(raw.received.toString("latin1"), ["GET", "GET"]);
  return [...responses.map(({ body: text }) => text), ...(rest === "" ? [] : [rest])];
}
