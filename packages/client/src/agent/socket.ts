/** The one thing the two runtimes do differently: how a WebSocket carries the token. */

/** The part of the standard WebSocket that is used, so that no runtime's own typings are needed. */
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
 * Opens with the runtime's own WebSocket (Node ≥ 22 has one). A browser cannot set headers on it, so there the token travels in the
 * query; on Node it goes into a header, where access logs do not show it.
 */
export const openSocket: OpenSocket = (url, token) => {
  if (token === undefined) return new WebSocket(url.href);
  if (isNode()) {
    const options = { headers: { authorization: `Bearer ${token}` } };
    // Node's WebSocket takes an options object where the standard has sub-protocols.
    return new WebSocket(url.href, options as unknown as string[]);
  }
  const withToken = new URL(url);
  withToken.searchParams.set("token", token);
  return new WebSocket(withToken.href);
};

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  // A page inside Electron has both; there the browser's WebSocket is the global one.
  return process?.versions?.node !== undefined && !("document" in globalThis);
}
