/**
 * The hibernating WebSockets of an object that moves to another node. The node of the client keeps the socket and tells the new owner about it, with
 * tags and attachment; there is no new request. The new owner knows the sockets before it can run the object.
 *
 * An object that was interrupted (a turn that did not end in time, a promise of `waitUntil`, a body that it still produces) takes no WebSockets
 * along: they are cut, as when its node is lost. Its clients may wait for something that will never come, and connect again.
 */
import { deserialize, serialize } from "node:v8";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import type { LinkStream } from "../../../engines/node-link/index.ts";
import type { HandOverHook } from "../../instance/hand-over-hook.ts";
import { type InstanceRef, keyOf } from "../../instance/instance-ref.ts";
import type { ObjectHost } from "../../objects/object-host.ts";
import type { AdoptedSocket } from "../../objects/object-sockets.ts";
import { endOf, type FrameOutcome, type FrameReceiver, type SocketEnd } from "../../objects/web-socket.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import type { Placement } from "../../placement/placement.ts";
import { CallSession } from "./call-session.ts";
import type { Reference } from "./references.ts";
import type { SessionHost } from "./session-references.ts";
import { type Route, SocketTunnel } from "./socket-tunnel.ts";
import { CUT } from "./wire-frames.ts";

export interface SocketMovesParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly objects: ObjectHost;
}

/** The name of the streams. */
const ADOPT = "objects.adopt";
/** A client's node that does not answer in this time is left behind: its sockets are cut. */
const MAX_RELOCATE_MS = 2000;

interface Move {
  readonly ref: InstanceRef;
  /** Where the object goes; null: wherever it is found. */
  readonly to: NodeInc | null;
  readonly socket: AdoptedSocket;
}

export class SocketMoves implements HandOverHook {
  readonly #parts: SocketMovesParts;
  readonly #host: SessionHost;

  constructor(parts: SocketMovesParts, host: Omit<SessionHost, "follow">) {
    this.#parts = parts;
    this.#host = { ...host, follow: (move, tunnel) => this.#follow(deserialize(move) as Move, tunnel) };
  }

  /** For sessions of this node. */
  get host(): SessionHost {
    return this.#host;
  }

  /** Takes over WebSockets of objects that come to this node. */
  serve(): void {
    this.#parts.network.serveStreams(ADOPT, (payload, stream, from) => this.#adopt(payload, stream, from));
  }

  concerns(ref: InstanceRef): boolean {
    return this.#parts.objects.connectionCount(ref) > 0;
  }

  /**
   * The object is about to leave this node. Resolves when the new owner knows its WebSockets; the returned function is called when the object has been
   * given up. Begins at once: a frame that arrives from now on waits.
   */
  async leave(ref: InstanceRef, to: NodeInc | null, wasQuiet: boolean): Promise<() => void> {
    const { sockets, isFacet } = this.#parts.objects;
    const key = keyOf(ref);
    const set = sockets.find(key);
    if (set === undefined) return () => undefined;
    if (!wasQuiet || isFacet(ref)) {
      sockets.take(key)?.terminate();
      return () => undefined;
    }
    const tunnels: SocketTunnel[] = [];
    const move = (end: SocketEnd) => {
      set.ends.delete(end);
      return this.#move(end, { ref, to, socket: describe(end, set.autoResponse) }, tunnels);
    };
    // A socket that is still on its way to this node arrives first.
    await Promise.all([...set.ends].map((end) => end.moving?.then(() => move(end)) ?? move(end)));
    sockets.releaseIfEmpty(key);
    // Frames that waited for the object come back first.
    return () =>
      void setImmediate(() => {
        for (const tunnel of tunnels) tunnel.settle();
      });
  }

  /** Adds the tunnel of a client of this node to `tunnels`. */
  async #move(end: SocketEnd, move: Move, tunnels: SocketTunnel[]): Promise<void> {
    if (end.relocate !== null) {
      // Frames that were on their way go back.
      end.connect(NOT_RUN);
      if (!(await withinTime(end.relocate(serialize(move))))) void end.transmit(CUT);
      return;
    }
    const tunnel = new SocketTunnel(end, this.#host);
    tunnels.push(tunnel);
    tunnel.startMoving();
    await this.#follow(move, tunnel).then(
      (place) => tunnel.goOn(place),
      () => tunnel.lost(null),
    );
  }

  async #follow(move: Move, tunnel: SocketTunnel): Promise<Route | FrameReceiver> {
    const { network, placement } = this.#parts;
    const here = async () => this.#parts.objects.adoptSocket(move.ref, tunnel.end, move.socket);
    if (move.to === network.self) return here();
    const there = async (node: NodeInc) => this.#send(node, move, tunnel);
    if (move.to !== null && network.linkTo(move.to) !== null) return there(move.to);
    return placement.reach<Route | FrameReceiver>({ ref: move.ref, here, there });
  }

  async #send(node: NodeInc, move: Move, tunnel: SocketTunnel): Promise<Route> {
    const session = new CallSession("caller", this.#host, node);
    const { reference, route } = session.references.adopt(tunnel);
    await session.open([move.ref, move.socket, reference], ADOPT);
    return route;
  }

  #adopt(payload: Buffer, stream: LinkStream, from: NodeInc): void {
    const session = new CallSession("owner", this.#host, from);
    session.serve(payload, stream, async (value) => {
      const [ref, socket, reference] = value as [InstanceRef, AdoptedSocket, Reference];
      const end = endOf(session.references.socket(reference));
      end.connect(this.#parts.objects.adoptSocket(ref, end, socket));
      return true;
    });
  }
}

function describe(end: SocketEnd, autoResponse: AdoptedSocket["autoResponse"]): AdoptedSocket {
  const { tags, attachment, autoResponseAt } = end;
  return { tags: [...tags], attachment, autoResponseAt, autoResponse };
}

const NOT_RUN: FrameReceiver = () => Promise.resolve<FrameOutcome>("not run");

/** False if the work takes too long. */
async function withinTime(work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), MAX_RELOCATE_MS);
  });
  const isDone = await Promise.race([work.then(() => true), tooLate]);
  clearTimeout(timer);
  return isDone;
}
