/**
 * WebSockets in a cluster: they end where they arrived, and follow their instances over the nodes. This node is the edge of the sockets that
 * arrive here, and the owner of the instances that run here.
 */
import { repeat } from "../../../core/repeat.ts";
import type { ConnectionContext } from "../../api/connection.ts";
import type { LocalSocket } from "../../../engines/http-server/index.ts";
import type { AcceptedSocket } from "../../doors/connection-inbox.ts";
import type { SocketRouter } from "../../doors/websocket-door.ts";
import { type InstanceRef, keyOf } from "../../instance/instance-ref.ts";
import { EdgeConnection } from "./edge-connection.ts";
import { EdgeGroup, type EdgeGroupParts } from "./edge-group.ts";
import { OwnerSessions, type OwnerSessionsParts } from "./owner-sessions.ts";

/** How often a reader looks for an instance that does not exist yet: it may be created at any node. */
const ARRIVAL_MS = 1000;

export type RemoteSocketsParts = OwnerSessionsParts & Pick<EdgeGroupParts, "maxBrokenMs">;

export class RemoteSockets implements SocketRouter {
  readonly #parts: RemoteSocketsParts;
  readonly #groups = new Map<string, EdgeGroup>();
  readonly #owned: OwnerSessions;
  readonly #stopListening: readonly (() => void)[];
  #self: string;
  #nextNumber = 1;
  #onEmpty: (() => void) | null = null;

  constructor(parts: RemoteSocketsParts) {
    this.#parts = parts;
    this.#self = parts.network.self;
    this.#owned = new OwnerSessions(parts);
    this.#stopListening = [
      parts.directory.onMoved((key) => {
        this.#owned.moved(key);
        this.#groups.get(key)?.moved();
      }),
      parts.network.onChange(() => this.#nodesChanged()),
    ];
  }

  /** Answers other nodes from now on: the agents are loaded. */
  serve(): void {
    this.#owned.serve();
  }

  join(accepted: AcceptedSocket, socket: LocalSocket, context: ConnectionContext): EdgeConnection {
    const group = this.#group(accepted);
    const number = this.#nextNumber;
    this.#nextNumber = number === 0xffff_ffff ? 1 : number + 1;
    const connection = new EdgeConnection(number, accepted, socket, context, group);
    group.add(connection);
    return connection;
  }

  onArrival(ref: InstanceRef, callback: () => void): () => void {
    const { directory, logger } = this.#parts;
    let isOver = false;
    const stop = () => {
      isOver = true;
      void looking.stop();
      cancel();
    };
    const arrived = () => {
      if (isOver) return;
      stop();
      callback();
    };
    const cancel = directory.onArrival(keyOf(ref), arrived);
    const looking = repeat(
      ARRIVAL_MS,
      async () => {
        if (await directory.exists(ref)) arrived();
      },
      (error) => logger.debug({ err: error }, "cannot look for an instance; retrying"),
    );
    return stop;
  }

  /** Resolves when no socket is left, at the latest after the time. */
  async whenEmpty(maxMs: number): Promise<void> {
    if (this.#groups.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, maxMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** This node stops, and its instances with it: their sockets at other nodes find them elsewhere. */
  endSessions(): Promise<void> {
    return this.#owned.moveAll();
  }

  stop(): void {
    for (const stop of this.#stopListening) stop();
  }

  #group({ definition, ref }: AcceptedSocket): EdgeGroup {
    const key = keyOf(ref);
    let group = this.#groups.get(key);
    if (group === undefined) {
      const parts = { ...this.#parts, onEmpty: (empty: EdgeGroup) => this.#remove(empty) };
      group = new EdgeGroup(parts, definition, ref);
      this.#groups.set(key, group);
    }
    return group;
  }

  #remove(group: EdgeGroup): void {
    if (this.#groups.get(group.key) === group) this.#groups.delete(group.key);
    if (this.#groups.size === 0) this.#onEmpty?.();
  }

  #nodesChanged(): void {
    const { self } = this.#parts.network;
    if (self !== this.#self) {
      this.#self = self;
      this.#owned.dropAll();
      for (const group of this.#groups.values()) group.rejoined();
      return;
    }
    this.#owned.nodesChanged();
    for (const group of this.#groups.values()) group.nodesChanged();
  }
}
