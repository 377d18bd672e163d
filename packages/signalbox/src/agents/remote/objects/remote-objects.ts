/**
 * Objects on any node of a cluster. A stub's call runs where its object is: here, or through a session on a link to the other node.
 *
 * Invariants:
 * 1. A call is sent again only if nothing of it was run (`Placement.reach`). After that, a lost node is an error for the caller: the outcome of the
 *    call is unknown.
 * 2. A call runs at the owner as a call of that node does: it waits for its turn, and its outcome leaves when the object's writes are durable.
 */
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import { LinkError, type LinkStream } from "../../../engines/node-link/index.ts";
import { runOutsideTurns } from "../../../engines/turn-runtime/index.ts";
import type { InstanceRef } from "../../instance/instance-ref.ts";
import type { ObjectAddress, ObjectCalls, ObjectReach } from "../../objects/object-calls.ts";
import type { ObjectHost } from "../../objects/object-host.ts";
import { NotSentError, type NodeInc, type Placement } from "../../placement/placement.ts";
import { CallSession, FIRST_CALL, type SessionHost } from "./call-session.ts";
import { decodeValue } from "./wire-values.ts";

export interface RemoteObjectsParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly objects: ObjectHost;
  readonly account: string;
  /** Bytes that may wait for one WebSocket of a client. */
  readonly maxBufferedBytes: number;
}

/** The name of the streams. */
const CALL = "objects.call";

/** What opens a session: a call of a method, a property, or a request. */
type FirstCall =
  | { readonly kind: "invoke"; readonly path: readonly string[]; readonly args: readonly unknown[] | null }
  | { readonly kind: "fetch"; readonly request: Request };

export class RemoteObjects implements ObjectReach {
  readonly #parts: RemoteObjectsParts;
  readonly #host: SessionHost;

  constructor(parts: RemoteObjectsParts) {
    this.#parts = parts;
    this.#host = {
      maxBufferedBytes: parts.maxBufferedBytes,
      objectStub: (address) => parts.objects.stubOf(address),
    };
  }

  /** Answers calls of other nodes. */
  serve(): void {
    this.#parts.network.serveStreams(CALL, (payload, stream) =>
      runOutsideTurns(() => this.#serve(payload, stream)),
    );
  }

  callsOf(agent: string, address: ObjectAddress, here: ObjectCalls): ObjectCalls {
    const ref: InstanceRef = { account: this.#parts.account, agent, name: address.id };
    const there = (node: NodeInc, call: FirstCall) => this.#call(node, address, call);
    const { placement } = this.#parts;
    return {
      invoke: (path, args) =>
        placement.reach({
          ref,
          here: () => here.invoke(path, args),
          there: (node) => there(node, { kind: "invoke", path, args }),
        }),
      fetch: (request) =>
        placement.reach({
          ref,
          here: () => here.fetch(request),
          there: async (node) => (await there(node, { kind: "fetch", request })) as Response,
        }),
    };
  }

  async #call(node: NodeInc, address: ObjectAddress, call: FirstCall): Promise<unknown> {
    const link = this.#parts.network.linkTo(node);
    if (link === null) throw new NotSentError(`there is no link to node ${node}`);
    // Its frames are events of the session, and no part of the caller's turn.
    return runOutsideTurns(() => {
      const session = new CallSession("caller", this.#host);
      const payload = session.encode([address, call]);
      let stream: LinkStream;
      try {
        stream = link.openStream(CALL, payload);
      } catch (error) {
        if (error instanceof LinkError && error.isUnsent) throw new NotSentError(error.message);
        throw error;
      }
      const result = session.first();
      session.start(stream);
      return result;
    });
  }

  #serve(payload: Buffer, stream: LinkStream): void {
    const session = new CallSession("owner", this.#host);
    session.start(stream);
    const decoded = decodeValue(payload, session);
    const run = async () => {
      if (decoded.loading !== null) await decoded.loading;
      const [address, call] = decoded.value as [ObjectAddress, FirstCall];
      const calls = this.#parts.objects.callsHere(address);
      return call.kind === "fetch" ? calls.fetch(call.request) : calls.invoke(call.path, call.args);
    };
    session.serve(FIRST_CALL, async () => {
      try {
        return await run();
      } catch (error) {
        if (error instanceof InstanceElsewhereError) session.refuse(error.node);
        throw error;
      }
    });
  }
}
