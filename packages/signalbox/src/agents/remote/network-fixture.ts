/** Two nodes on loopback, with real links, and a placement that the test controls. */
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import { LinkError, type LinkHandler, type Links } from "../../engines/node-link/index.ts";
import { openLinks, peerOf } from "../../engines/node-link/links-fixture.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import { NotSentError, type Placement } from "../placement/placement.ts";

export interface TestNode {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly links: Links;
}

export interface TestNodes {
  readonly one: TestNode;
  readonly two: TestNode;
  /** The owner of each instance by its key; node 2 owns all others. */
  readonly owners: Map<string, string>;
  close(): Promise<void>;
}

export async function openTestNodes(): Promise<TestNodes> {
  const owners = new Map<string, string>();
  const first = await openNode("1", owners);
  const second = await openNode("2", owners);
  first.links.setPeers([peerOf("2", second.links, false)]);
  second.links.setPeers([peerOf("1", first.links, true)]);
  while (first.links.to("2") === null || second.links.to("1") === null) await sleep(1);
  return {
    one: first,
    two: second,
    owners,
    close: async () => {
      await Promise.all([first.links.close(), second.links.close()]);
    },
  };
}

async function openNode(self: string, owners: ReadonlyMap<string, string>): Promise<TestNode> {
  const calls = new Map<string, Parameters<NodeNetwork["serve"]>[1]>();
  const streams = new Map<string, Parameters<NodeNetwork["serveStreams"]>[1]>();
  const handler: LinkHandler = {
    onCall: (name, payload, from) => {
      const service = calls.get(name);
      if (service === undefined) throw new LinkError({ code: "unknown", message: name });
      return service(payload, from.peer.node);
    },
    onStream: (name, payload, stream, from) => {
      const service = streams.get(name);
      if (service === undefined) throw new LinkError({ code: "unknown", message: name });
      service(payload, stream, from.peer.node);
    },
  };
  const links = await openLinks(self, handler);
  const network: NodeNetwork = {
    self,
    members: ["1", "2"].map((inc) => ({ inc, name: `node-${inc}`, state: "up" as const })),
    linkTo: (node) => links.to(node),
    call: (node, name, payload, signal) => links.call(node, name, payload, signal),
    serve: (name, service) => void calls.set(name, service),
    serveStreams: (name, service) => void streams.set(name, service),
    withdraw: (prefix) => {
      for (const name of calls.keys()) if (name.startsWith(prefix)) calls.delete(name);
      for (const name of streams.keys()) if (name.startsWith(prefix)) streams.delete(name);
    },
    onChange: () => () => undefined,
  };
  return { links, network, placement: new TestPlacement(self, owners) };
}

const MAX_ATTEMPTS = 50;

class TestPlacement implements Placement {
  readonly #self: string;
  readonly #owners: ReadonlyMap<string, string>;
  /** What this node believes, if it is wrong. */
  readonly #learned = new Map<string, string>();

  constructor(self: string, owners: ReadonlyMap<string, string>) {
    this.#self = self;
    this.#owners = owners;
  }

  find(ref: InstanceRef): string | null {
    const node = this.#learned.get(keyOf(ref)) ?? this.#owners.get(keyOf(ref)) ?? "2";
    return node === this.#self ? null : node;
  }

  learn(ref: InstanceRef, node: string | null): void {
    if (node === null) this.#learned.delete(keyOf(ref));
    else this.#learned.set(keyOf(ref), node);
  }

  async reach<T>(attempt: Parameters<Placement["reach"]>[0]): Promise<T> {
    for (let i = 0; ; i++) {
      attempt.signal?.throwIfAborted();
      try {
        const node = this.find(attempt.ref);
        return (await (node === null ? attempt.here() : attempt.there(node))) as T;
      } catch (error) {
        if (i === MAX_ATTEMPTS) throw error;
        if (error instanceof InstanceElsewhereError) this.learn(attempt.ref, error.node);
        else if (error instanceof NotSentError) await sleep(10);
        else throw error;
      }
    }
  }
}
