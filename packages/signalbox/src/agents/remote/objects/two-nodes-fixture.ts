/** Two nodes in one process, with a real link between them: the objects of all classes are on the second one unless a test says otherwise. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NetworkMember, NodeNetwork } from "../../../contracts/node-network.ts";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { Link, LinkStream, Links } from "../../../engines/node-link/index.ts";
import { openLinks, peerOf } from "../../../engines/node-link/links-fixture.ts";
import { type HostOptions, openHost, type TestHost } from "../../objects/object-host-fixture.ts";
import type { ObjectClass, ObjectNamespace } from "../../objects/object-types.ts";
import type { InstanceRef } from "../../instance/instance-ref.ts";
import { NotSentError, type Placement } from "../../placement/placement.ts";
import { RemoteObjects } from "./remote-objects.ts";

type StreamService = (payload: Buffer, stream: LinkStream, from: string) => void;

export class LinkNetwork implements NodeNetwork {
  readonly self: string;
  members: readonly NetworkMember[] = [
    { inc: "1", name: "one", state: "up" },
    { inc: "2", name: "two", state: "up" },
  ];
  links: Links | null = null;
  readonly #streams = new Map<string, StreamService>();
  readonly #listeners = new Set<() => void>();
  readonly #calls = new Map<string, (payload: Buffer, from: string) => Uint8Array | Promise<Uint8Array>>();

  constructor(self: string) {
    this.self = self;
  }

  readonly handler = {
    onCall: (name: string, payload: Buffer, from: Link) =>
      this.#calls.get(name)?.(payload, from.peer.node) ?? new Uint8Array(0),
    onStream: (name: string, payload: Buffer, stream: LinkStream, from: Link) =>
      this.#streams.get(name)?.(payload, stream, from.peer.node),
  };

  linkTo(node: string): Link | null {
    return this.links?.to(node) ?? null;
  }

  call(node: string, name: string, payload: Uint8Array, signal?: AbortSignal): Promise<Buffer> {
    if (this.links === null) return Promise.reject(new Error("not linked"));
    return this.links.call(node, name, payload, signal);
  }

  serve(name: string, service: (payload: Buffer, from: string) => Uint8Array | Promise<Uint8Array>): void {
    this.#calls.set(name, service);
  }

  serveStreams(name: string, service: StreamService): void {
    this.#streams.set(name, service);
  }

  withdraw(): void {
    this.#calls.clear();
    this.#streams.clear();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** The other node was declared dead. */
  loseOther(): void {
    this.members = this.members.filter(({ inc }) => inc === this.self);
    this.changed();
  }
}

export interface TwoNodes {
  /** Namespaces of the first node, whose objects are on the second one. */
  readonly env: Readonly<Record<string, ObjectNamespace>>;
  readonly one: TestHost;
  readonly two: TestHost;
  /** The node that owns all objects. */
  owner: "1" | "2";
  /** The owner of the objects of a class, if they are not all on one node. */
  ownerOf: ((agent: string) => "1" | "2") | null;
  /** The second node stops: it ends what the first one holds of it. */
  endSessions(): void;
  /** Breaks the link for a moment. */
  breakLink(): void;
  /** Breaks the link for ever: each node is declared dead in the eyes of the other. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

export async function openTwoNodes(
  classes: Readonly<Record<string, ObjectClass>>,
  options: HostOptions = {},
): Promise<TwoNodes> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-two-"));
  const [networkOne, networkTwo] = [new LinkNetwork("1"), new LinkNetwork("2")];
  const linksOne = await openLinks("1", networkOne.handler);
  const linksTwo = await openLinks("2", networkTwo.handler);
  linksOne.setPeers([peerOf("2", linksTwo, false)]);
  linksTwo.setPeers([peerOf("1", linksOne, true)]);
  networkOne.links = linksOne;
  networkTwo.links = linksTwo;
  while (linksOne.to("2") === null || linksTwo.to("1") === null)
    await new Promise((resolve) => setTimeout(resolve, 1));
  await mkdir(join(folder, "one"));
  await mkdir(join(folder, "two"));
  const one = await openHost(join(folder, "one"), classes, options);
  const two = await openHost(join(folder, "two"), classes, options);
  const remotes: RemoteObjects[] = [];
  const nodes = {
    env: one.env,
    one,
    two,
    owner: "2" as "1" | "2",
    ownerOf: null as TwoNodes["ownerOf"],
    endSessions() {
      remotes[1]?.endSessions();
    },
    breakLink() {
      linksOne.to("2")?.close({ code: "broken", message: "cut" });
    },
    async cut() {
      await Promise.all([linksOne.close(), linksTwo.close()]);
      for (const network of [networkOne, networkTwo]) network.loseOther();
    },
    async close() {
      await this.cut();
      await one.close();
      await two.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  for (const [host, network] of [
    [one, networkOne],
    [two, networkTwo],
  ] as const) {
    const remote = new RemoteObjects({
      network,
      placement: placementOf(network.self, ({ agent }) => nodes.ownerOf?.(agent) ?? nodes.owner),
      ownership: { claim: async () => [], onFenced: () => undefined },
      directory: host.directory,
      objects: host.host,
      account: "default",
      maxBufferedBytes: 2 ** 20,
      maxBrokenMs: 60_000,
    });
    remotes.push(remote);
    host.connect(remote);
    remote.serve();
  }
  return nodes;
}

function placementOf(self: string, owner: (ref: InstanceRef) => string): Placement {
  return {
    find: (ref) => (owner(ref) === self ? null : owner(ref)),
    learn: () => undefined,
    reach: async ({ ref, here, there }) => {
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await (owner(ref) === self ? here() : there(owner(ref)));
        } catch (error) {
          const isUnrun = error instanceof NotSentError || error instanceof InstanceElsewhereError;
          if (!isUnrun || attempt > 2) throw error;
        }
      }
    },
  };
}
