/**
 * The session between this server and the process of a loaded program: one session, opened with the program, that lives as long as the process. Calls, streams, requests and
 * WebSockets pass through it as between two nodes. The process is not trusted: it cannot name objects, it begins no calls and streams of the link, and what it sends in a form that a session does not have ends the session.
 */
import type { Duplex } from "node:stream";
import { type Link, LinkError, linkProcesses } from "../../../engines/node-link/index.ts";
import { CallSession } from "./call-session.ts";
import type { SessionHost } from "./session-references.ts";

const LOAD = "program.load";
const PING = "program.ping";
const NODE = "process";
/** Bytes that may wait for one WebSocket. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

export interface ProcessSession {
  /** What the other side returned for the first value. Rejects if it failed. */
  readonly root: Promise<unknown>;
  /** Nothing of the other side is in use but the root: no stub, no stream, no WebSocket. */
  readonly isQuiet: boolean;
  /** Grows whenever something of the other side is used. */
  readonly uses: number;
  /** Calls fail from now on: the socket was closed, or the other side has ended the session. */
  readonly isOver: boolean;
  /** Resolves when the event loop of the other side has come to it. */
  ping(): Promise<void>;
}

/** The side of the server. `first` may contain stubs, as arguments of calls do. `onClose` is called when the session is over: the process is of no use then. */
export function openProcessSession(socket: Duplex, first: unknown, onClose: () => void): ProcessSession {
  let isOver = false;
  const close = () => {
    isOver = true;
    onClose();
  };
  const link = linkProcesses(socket, "dialler", null, close);
  const session = new CallSession("caller", { ...hostOf(link), onOver: close }, NODE);
  return {
    root: session.open([null, { first }], LOAD),
    get isQuiet() {
      return session.references.heldCount <= 1;
    },
    get uses() {
      return session.references.uses;
    },
    get isOver() {
      return isOver;
    },
    ping: async () => {
      await link.call(PING, new Uint8Array());
    },
  };
}

/** The side of the process. `load` gets the first value. */
export function serveProcessSession(socket: Duplex, load: (first: unknown) => Promise<unknown>): void {
  const link = linkProcesses(
    socket,
    "listener",
    {
      onCall: (name) => (name === PING ? new Uint8Array() : unknown(name)),
      onStream: (name, payload, stream) => {
        if (name !== LOAD) unknown(name);
        const session = new CallSession("owner", hostOf(link), NODE);
        session.serve(payload, stream, (call) =>
          load((call as [null, { readonly first: unknown }])[1].first),
        );
      },
    },
    () => undefined,
  );
}

function unknown(name: string): never {
  throw new LinkError({ code: "unknown", message: `there is no ${name}` });
}

function hostOf(link: Link): SessionHost {
  return {
    network: { linkTo: () => link },
    objectStub: null,
    sessions: new Map(),
    // A process does not come back.
    broken: { add: (session) => session.lose() },
    maxBufferedBytes: MAX_BUFFERED_BYTES,
    follow: () => Promise.reject(new Error("a WebSocket of a loaded program does not move")),
  };
}
