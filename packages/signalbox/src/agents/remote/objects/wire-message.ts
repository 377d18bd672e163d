/** The messages of a session between two nodes: items of its channel, each an id and what belongs to it. */

/** 0 and 1 are items of the channel itself. */
export const MESSAGES = {
  /** id: of the call; payload: reference, path, arguments. */
  call: 2,
  /** id: of the call; payload: the value. */
  result: 3,
  /** id: of the call; payload: what was thrown. */
  thrown: 4,
  /** id: of the call; payload: the bytes that the call resolved to, as they are. */
  bytes: 5,
  /** id: a reference of the receiver that the sender needs no more, or a signal of the sender that will not abort any more; payload: see `RELEASE`. */
  release: 6,
  /** id: an `AbortSignal` of the sender; payload: the reason. */
  abort: 7,
  /** id: a WebSocket; payload: UTF-8. */
  text: 8,
  /** id: a WebSocket; payload: bytes. */
  binary: 9,
  /** id: a WebSocket; payload: code, cleanness, reason. */
  close: 10,
  /** id: a WebSocket; payload: the number of the frame that was handled, and how (`OUTCOMES`). */
  handled: 11,
  /** id: a WebSocket; payload: where it belongs from now on, and what belongs to it. */
  moved: 12,
  /** id: none; payload: the numbers of all WebSockets that the sender has. The first message after a break. */
  alive: 13,
} as const;

export type MessageKind = (typeof MESSAGES)[keyof typeof MESSAGES];

/** Why a reference is released: the program disposed it, or no code refers to it any more. */
export const RELEASE = { disposed: Buffer.of(0), collected: Buffer.of(1) } as const;

/** As in the originals: the limit of the arguments or the result of one call. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
