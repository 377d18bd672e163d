/** The sessions of all edges with instances of this node: answers their hellos, and ends sessions when nodes or instances are gone. */
import { SignalboxError } from "@signalbox/protocol";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { LinkStream } from "../../../engines/node-link/index.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { InboxParts } from "../../doors/connection-inbox.ts";
import { resume } from "../../doors/connection-turns.ts";
import type { AgentDefinition } from "../../instance/agent-definition.ts";
import { keyOf } from "../../instance/instance-ref.ts";
import type { Placement } from "../../placement/placement.ts";
import { decodeHello, type Hello, SOCKET_STREAMS, toRefusal, UNKNOWN_SESSION } from "./hello.ts";
import { OwnerSession } from "./owner-session.ts";

export interface OwnerSessionsParts extends InboxParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly logger: Logger;
}

interface Known {
  readonly id: string;
  readonly session: OwnerSession;
}

export class OwnerSessions {
  readonly #parts: OwnerSessionsParts;
  /** At most one session for each instance and edge: by the instance's key and the edge's node. */
  readonly #sessions = new Map<string, Map<string, Known>>();

  constructor(parts: OwnerSessionsParts) {
    this.#parts = parts;
  }

  /** Answers other nodes from now on: the agents are loaded. */
  serve(): void {
    this.#parts.network.serveStreams(SOCKET_STREAMS, (payload, stream, from) => {
      void this.#serve(decodeHello(payload), stream, from);
    });
  }

  /** The instance of this key runs at another node. */
  moved(key: string): void {
    for (const { session } of this.#sessions.get(key)?.values() ?? []) void session.moved(null);
  }

  /** Nodes have joined or left. */
  nodesChanged(): void {
    const living = new Set(this.#parts.network.members.map(({ inc }) => inc));
    for (const session of this.#all()) if (!living.has(session.edge)) session.edgeGone();
  }

  /** All instances run at other nodes. Resolves when their edges have been told. */
  async moveAll(): Promise<void> {
    await Promise.all(this.#all().map((session) => session.moved(null)));
  }

  /** This node owns nothing any more. */
  dropAll(): void {
    for (const session of this.#all()) session.drop();
  }

  #all(): OwnerSession[] {
    return [...this.#sessions.values()].flatMap((edges) => [...edges.values()].map(({ session }) => session));
  }

  #remove(session: OwnerSession): void {
    const edges = this.#sessions.get(session.key);
    if (edges?.get(session.edge)?.session !== session) return;
    edges.delete(session.edge);
    if (edges.size === 0) this.#sessions.delete(session.key);
  }

  async #serve(hello: Hello, stream: LinkStream, from: string): Promise<void> {
    const key = keyOf(hello.ref);
    const known = this.#sessions.get(key)?.get(from);
    if (hello.isContinued) {
      if (known?.id === hello.session) this.#attach(known.session, stream, hello.received, true);
      else stream.reset(UNKNOWN_SESSION);
      return;
    }
    let existed: boolean;
    let definition: AgentDefinition;
    try {
      definition = this.#definition(hello.ref.agent);
      existed = await this.#requireHere(definition, hello);
    } catch (error) {
      stream.reset(toRefusal(error));
      return;
    }
    // The edge has given up its earlier session, whose end did not arrive.
    this.#sessions.get(key)?.get(from)?.session.drop();
    const session = new OwnerSession({
      ...this.#parts,
      definition,
      ref: hello.ref,
      edge: from,
      onOver: (over) => this.#remove(over),
      onDefect: (failure) =>
        this.#parts.logger.error({ node: from, reason: failure.message }, "a node sent malformed items"),
    });
    const edges = this.#sessions.get(key) ?? new Map<string, Known>();
    this.#sessions.set(key, edges.set(from, { id: hello.session, session }));
    this.#attach(session, stream, 0, existed);
  }

  #attach(session: OwnerSession, stream: LinkStream, received: number, existed: boolean): void {
    try {
      session.attach(stream, received, existed);
    } catch {
      // The edge claims to have received what was never sent.
      stream.reset(UNKNOWN_SESSION);
      session.edgeGone();
    }
  }

  #definition(agent: string): AgentDefinition {
    const definition = this.#parts.definitions.get(agent);
    if (definition === undefined)
      throw new SignalboxError("agent_not_found", { message: `No agent "${agent}"` });
    return definition;
  }

  /** Loads the instance. Returns whether it existed; throws why it cannot be here. */
  async #requireHere(definition: AgentDefinition, { ref, mayCreate }: Hello): Promise<boolean> {
    const { placement, directory } = this.#parts;
    let node = await placement.find(ref);
    if (node !== null) {
      // The edge may know more: the former owner has handed the instance over.
      placement.learn(ref, null);
      node = await placement.find(ref);
    }
    if (node !== null) throw new InstanceElsewhereError(node);
    const existed = await directory.exists(ref);
    if (!existed && !mayCreate) throw new SignalboxError("agent_destroyed");
    // A turn begins only where the instance is.
    await resume(directory.get(definition, ref.account, ref.name), () => []);
    return existed;
  }
}
