/**
 * Objects on any node of a cluster. A stub's call runs where its object is: here, or through a session on a link to the other node.
 *
 * Invariants:
 * 1. A call is sent again only if nothing of it was run (`Placement.reach`). After that, a lost node is an error for the caller: the outcome of the
 *    call is unknown.
 * 2. A call runs at the owner as a call of that node does: it waits for its turn, and its outcome leaves when the object's writes are durable.
 * 3. Calls of one stub begin in the order in which they were made, unless the object moves meanwhile.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import { InstanceElsewhereError, type Ownership } from "../../../engines/instance-store/index.ts";
import { runOutsideTurns } from "../../../engines/turn-runtime/index.ts";
import type { Directory } from "../../instance/directory.ts";
import { databaseName, type InstanceRef, keyOf, refOf } from "../../instance/instance-ref.ts";
import type { ObjectAddress, ObjectCalls, ObjectReach } from "../../objects/object-calls.ts";
import type { ObjectHost } from "../../objects/object-host.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import { type PlacedWork, NotSentError, type Placement } from "../../placement/placement.ts";
import { BrokenSessions } from "./broken-sessions.ts";
import { CallSession, serveContinued } from "./call-session.ts";
import type { SessionHost } from "./session-references.ts";
import { SocketMoves } from "./socket-moves.ts";

export interface RemoteObjectsParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly ownership: Pick<Ownership, "claim" | "onFenced">;
  readonly directory: Pick<Directory, "onHandOver">;
  readonly objects: ObjectHost;
  readonly account: string;
  /** Bytes that may wait for one WebSocket of a client. */
  readonly maxBufferedBytes: number;
  /** How long a link may be broken before WebSockets are cut. */
  readonly maxBrokenMs: number;
}

/** The name of the streams. */
const CALL = "objects.call";

/** What opens a session: a call of a method, a property, or a request. */
type FirstCall =
  | { readonly kind: "invoke"; readonly path: readonly string[]; readonly args: readonly unknown[] | null }
  | { readonly kind: "fetch"; readonly request: Request };

export class RemoteObjects implements ObjectReach {
  readonly #parts: RemoteObjectsParts;
  readonly #moves: SocketMoves;
  readonly #sessions: SessionHost["sessions"] = new Map();
  /** Questions for the owners of objects, by the key of the object. */
  readonly #finding = new Map<string, Promise<NodeInc | null>>();

  constructor(parts: RemoteObjectsParts) {
    this.#parts = parts;
    this.#moves = new SocketMoves(parts, {
      maxBufferedBytes: parts.maxBufferedBytes,
      objectStub: (address) => parts.objects.stubOf(address),
      sessions: this.#sessions,
      network: parts.network,
      broken: new BrokenSessions(parts.network, parts.maxBrokenMs),
    });
    const { objects, directory, ownership } = parts;
    directory.onHandOver(this.#moves);
    // Another node runs the object, or may: what its clients wait for here never comes.
    ownership.onFenced(({ name }) => objects.sockets.take(keyOf(refOf(name)))?.terminate());
  }

  /** From now on this node answers calls of others: its classes are registered. Before, they are tried again. */
  serve(): void {
    this.#parts.network.serveStreams(CALL, (payload, stream, from) =>
      runOutsideTurns(() => {
        const session = new CallSession("owner", this.#moves.host, from);
        session.serve(payload, stream, (call) => this.#run(call as [ObjectAddress, FirstCall]));
      }),
    );
    this.#moves.serve();
    serveContinued(this.#parts.network, this.#moves.host);
  }

  /** This node stops, and its objects have ended: stubs of other nodes work no more. */
  endSessions(): void {
    for (const session of this.#sessions.values()) session.close();
  }

  callsOf(agent: string, address: ObjectAddress, here: ObjectCalls): ObjectCalls {
    const ref: InstanceRef = { account: this.#parts.account, agent, name: address.id };
    const there = (node: NodeInc, call: FirstCall) => this.#call(node, address, call);
    return {
      invoke: (path, args) =>
        this.#reach({
          ref,
          here: () => unlessStopping(() => here.invoke(path, args)),
          there: (node) => there(node, { kind: "invoke", path, args }),
        }),
      fetch: (request) =>
        this.#reach({
          ref,
          here: () => unlessStopping(() => here.fetch(request)),
          there: async (node) => (await there(node, { kind: "fetch", request })) as Response,
        }),
    };
  }

  /** Calls of one stub begin in their order, also those that wait until the owner is known (invariant 3). */
  #reach<T>(work: PlacedWork<T>): Promise<T> {
    const { placement } = this.#parts;
    const key = keyOf(work.ref);
    let finding = this.#finding.get(key);
    if (finding === undefined) {
      const found = placement.find(work.ref);
      if (!(found instanceof Promise)) return placement.reach(work);
      finding = found.finally(() => this.#finding.delete(key));
      this.#finding.set(key, finding);
    }
    return finding.then((node) => this.#tryAt(node, work));
  }

  /** Where one question has found the owner, all calls that waited for the answer are tried at once. */
  async #tryAt<T>(node: NodeInc | null, work: PlacedWork<T>): Promise<T> {
    try {
      return await (node === null ? work.here() : work.there(node));
    } catch (error) {
      if (error instanceof InstanceElsewhereError) this.#parts.placement.learn(work.ref, error.node);
      else if (!(error instanceof NotSentError)) throw error;
      return this.#parts.placement.reach(work);
    }
  }

  /** Found out by a frame: the object left without its WebSockets. */
  followTo(ref: InstanceRef, node: NodeInc | null): void {
    this.#parts.placement.learn(ref, node);
    void this.#moves.leave(ref, node, true).then((settle) => settle());
  }

  async claimFacet(ref: InstanceRef): Promise<void> {
    await this.#parts.ownership.claim([databaseName(ref)], { isForced: true });
  }

  async #call(node: NodeInc, address: ObjectAddress, call: FirstCall): Promise<unknown> {
    // Its messages are events of the session, and no part of the caller's turn.
    return runOutsideTurns(() => {
      const session = new CallSession("caller", this.#moves.host, node);
      return session.open([address, call], CALL);
    });
  }

  async #run([address, call]: [ObjectAddress, FirstCall]): Promise<unknown> {
    const calls = this.#parts.objects.callsHere(address);
    return unlessStopping(() =>
      call.kind === "fetch" ? calls.fetch(call.request) : calls.invoke(call.path, call.args),
    );
  }
}

/** A node that stops hands its objects over, and refuses work that has not begun. */
async function unlessStopping<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SignalboxError && error.id === "stopping") throw new InstanceElsewhereError(null);
    throw error;
  }
}
