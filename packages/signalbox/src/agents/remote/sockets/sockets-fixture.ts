/** Nodes in one process with real links, real instances on PostgreSQL, and sockets of clients that are objects of the test. */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { NodeNetwork } from "../../../contracts/node-network.ts";
import type { Link, LinkStream, Links } from "../../../engines/node-link/index.ts";
import { openLinks, peerOf } from "../../../engines/node-link/links-fixture.ts";
import type { SocketTarget } from "../../doors/arrived-socket.ts";
import { Departures } from "../../doors/departures.ts";
import { LocalSocket } from "../../../engines/http-server/index.ts";
import type { TestNode } from "../../placement/nodes-fixture.ts";
import { RemoteSockets } from "./remote-sockets.ts";
import { ItemReader } from "./socket-items.ts";

type StreamService = (payload: Buffer, stream: LinkStream, from: string) => void;

export class SocketNode {
  readonly node: TestNode;
  readonly links: Links;
  readonly sockets: RemoteSockets;
  readonly departures: Departures;
  /** The kinds of the items that this node has received as an edge. */
  readonly items: number[] = [];

  private constructor(node: TestNode, links: Links, services: Map<string, StreamService>) {
    this.node = node;
    this.links = links;
    const { network, directory, hub, logger, placement, definition } = node;
    const adapter: NodeNetwork = {
      get self() {
        return network.self;
      },
      get members() {
        return network.members;
      },
      linkTo: (inc) => this.#watched(links.to(inc)),
      call: () => Promise.reject(new Error("no calls")),
      serve: () => undefined,
      serveStreams: (name, service) => services.set(name, service),
      withdraw: () => services.clear(),
      onChange: (listener) => network.onChange(listener),
    };
    this.departures = new Departures({ directory, logger, lost: { add: () => undefined } });
    this.sockets = new RemoteSockets({
      network: adapter,
      placement,
      definitions: new Map([[definition.kebab, definition]]),
      directory,
      hub,
      departures: this.departures,
      logger,
      maxBrokenMs: 10_000,
    });
    this.sockets.serve();
  }

  static async open(node: TestNode): Promise<SocketNode> {
    const services = new Map<string, StreamService>();
    const changed = () => node.network.change();
    const links = await openLinks(
      node.inc,
      {
        onCall: () => Buffer.from(""),
        onStream: (name, payload, stream, from) => services.get(name)?.(payload, stream, from.peer.node),
      },
      { onUp: changed, onDown: changed },
    );
    return new SocketNode(node, links, services);
  }

  /** Links all nodes. */
  static async link(...nodes: readonly SocketNode[]): Promise<void> {
    for (const [i, one] of nodes.entries()) {
      const peers = nodes.flatMap((other, j) =>
        i === j ? [] : [peerOf(other.node.inc, other.links, i > j)],
      );
      one.links.setPeers(peers);
    }
    const isLinked = () => nodes.every(({ links }) => links.linked.length === nodes.length - 1);
    while (!isLinked()) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  /** A client connects at this node. */
  connect(name: string, id: string): TestClient {
    const { definition, hub } = this.node;
    return new TestClient((socket) => {
      const accepted = {
        definition,
        ref: this.node.ref(name),
        id,
        uri: `/agents/x/${name}`,
        isReadonly: false,
      };
      const request = new Request(`http://localhost/agents/x/${name}`, { headers: { "x-id": id } });
      hub.addSocket(socket);
      return this.sockets.join(accepted, socket, { request, props: { id } });
    });
  }

  async close(): Promise<void> {
    this.sockets.stop();
    this.departures.stop();
    await this.links.close();
  }

  #watched(link: Link | null): Link | null {
    if (link === null) return null;
    const open = link.openStream.bind(link);
    return Object.assign(Object.create(link) as Link, {
      openStream: (name: string, payload: Uint8Array) => {
        const stream = open(name, payload);
        const start = stream.start.bind(stream);
        const reader = new ItemReader();
        stream.start = (handler) =>
          start({
            ...handler,
            onData: (bytes) => {
              for (const { kind } of reader.push(bytes)) this.items.push(kind);
              handler.onData(bytes);
            },
          });
        return stream;
      },
    });
  }
}

/** A WebSocket client without a network. */
export class TestClient {
  /** Texts of the frames, in order. */
  readonly received: string[] = [];
  closeCode: number | null = null;
  readonly #target: SocketTarget;

  constructor(join: (socket: LocalSocket) => SocketTarget) {
    const webSocket = {
      readyState: 1,
      close: (code: number) => setImmediate(() => this.drop(code)),
      terminate: () => this.drop(1006),
      ping: () => undefined,
    };
    const socket = {
      writable: true,
      writableLength: 0,
      write: (frame: Buffer) => this.received.push(textOf(frame)),
    };
    const limits = { maxBufferedBytes: 2 ** 20 };
    this.#target = join(
      new LocalSocket(webSocket as unknown as WebSocket, socket as unknown as Duplex, limits),
    );
  }

  /** The states that the client was sent. */
  get states(): unknown[] {
    const prefix = '{"type":"cf_agent_state",';
    return this.received
      .filter((text) => text.startsWith(prefix))
      .map((text) => (JSON.parse(text) as { state: unknown }).state);
  }

  send(message: string): Promise<unknown> {
    return this.#target.receive(message);
  }

  /** The token of the client was revoked. */
  loseCredential(): void {
    this.#target.loseCredential();
  }

  /** The socket closes. */
  drop(code: number): void {
    if (this.closeCode !== null) return;
    this.closeCode = code;
    this.#target.leave(code, "");
  }
}

function textOf(frame: Buffer): string {
  const length = frame[1] ?? 0;
  return frame.toString("utf8", length < 126 ? 2 : length === 126 ? 4 : 10);
}
