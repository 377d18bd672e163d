/** Opens a WebSocket with the token, which browsers and Node send differently. */

/** The used part of the standard WebSocket, independent of the runtime's typings. */
export interface Socket {
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(
    type: "close",
    listener: (event: { readonly code: number; readonly reason: string }) => void,
  ): void;
}

export type OpenSocket = (url: URL, token: string | undefined) => Socket;

/**
 * Uses the runtime's WebSocket (Node 22 or newer). A browser cannot set headers, so the token is a query parameter there; on Node it is
 * sent in a header, which access logs do not record.
 */
export const openSocket: OpenSocket = (url, token) => {
  if (token === undefined) return new WebSocket(url.href);
  if (isNode()) {
    const options = { headers: { authorization: `Bearer ${token}` } };
    // Node's WebSocket accepts an options object in place of the sub-protocols.
    return new WebSocket(url.href, options as unknown as string[]);
  }
  const withToken = new URL(url);
  withToken.searchParams.set("token", token);
  return new WebSocket(withToken.href);
};

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  // Electron pages have both; their global WebSocket is the browser's.
  return process?.versions?.node !== undefined && !("document" in globalThis);
}
