/** What an edge and an owner say to each other about connections: the edge's side. */
import type { EdgeConnection, EdgeEvent } from "./edge-connection.ts";
import type { EdgeSession } from "./edge-session.ts";
import { decodeFacts, encodeOpened, toSent } from "./opened-connection.ts";
import {
  decodeClose,
  decodeFrame,
  encodeClose,
  encodeMessage,
  encodeNumbers,
  type Item,
  ITEM_KINDS,
  ItemError,
  readNumber,
} from "./socket-items.ts";

/** Throws if the props of the caller cannot be sent. */
export function sendOpened(session: EdgeSession, connection: EdgeConnection): void {
  const { accepted, context, facts, number, hasLostCredential } = connection;
  const { id, uri, isReadonly } = accepted;
  const sent = facts === null ? toSent(context) : null;
  const opened = encodeOpened({ id, uri, isReadonly, facts, context: sent });
  session.send(ITEM_KINDS.open, encodeNumbers(number), opened);
  if (hasLostCredential) sendCredentialEnded(session, connection);
}

export function sendCredentialEnded(session: EdgeSession, { number }: EdgeConnection): void {
  session.send(ITEM_KINDS.credentialEnded, encodeNumbers(number));
}

export function sendEvent(session: EdgeSession, { number }: EdgeConnection, event: EdgeEvent): void {
  const { ticket } = event;
  if (event.kind === "message") {
    const { message } = event;
    event.item = session.send(ITEM_KINDS.message, ...encodeMessage({ number, ticket, message }));
  } else {
    const { code, reason } = event;
    event.item = session.send(ITEM_KINDS.closed, encodeClose({ number, ticket, code, reason }));
  }
}

/** An item of the owner. Connections that are gone are ignored. Throws `ItemError`. */
export function applyItem(
  { kind, payload }: Item,
  find: (number: number) => EdgeConnection | undefined,
): void {
  switch (kind) {
    case ITEM_KINDS.frame: {
      const { to, frame } = decodeFrame(payload);
      // A copy: the last state is kept, and the memory around the frame belongs to the stream.
      const copy = Buffer.from(frame);
      for (const number of to) find(number)?.write(copy);
      return;
    }
    case ITEM_KINDS.close: {
      const { number, code, reason } = decodeClose(payload);
      find(number)?.close(code, reason);
      return;
    }
    case ITEM_KINDS.facts: {
      const connection = find(readNumber(payload, 0));
      if (connection !== undefined && payload.length > 4) connection.facts = decodeFacts(payload.subarray(4));
      return;
    }
    case ITEM_KINDS.ended:
      find(readNumber(payload, 0))?.handled(readNumber(payload, 4));
      return;
    case ITEM_KINDS.notRun:
      find(readNumber(payload, 0))?.notRun(readNumber(payload, 4));
      return;
    default:
      throw new ItemError(`an unknown kind of item: ${kind}`);
  }
}
