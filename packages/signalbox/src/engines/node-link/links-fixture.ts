/** Two linked nodes on loopback. */
import type { LinkHandler } from "./link.ts";
import { Links, type LinksOptions, type Peer } from "./links.ts";

export const REFUSING: LinkHandler = {
  onCall: () => {
    throw new Error("no call expected");
  },
  onStream: () => {
    throw new Error("no stream expected");
  },
};

export async function openLinks(
  node: string,
  handler: LinkHandler = REFUSING,
  options: Partial<LinksOptions> = {},
): Promise<Links> {
  return Links.listen(
    { host: "127.0.0.1", port: 0 },
    {
      self: { node, cluster: "test" },
      security: { secret: "a secret of the cluster", isEncrypted: false },
      handler,
      ...options,
    },
  );
}

/** The address of `links` as the other node sees it. */
export function peerOf(node: string, links: Links, isDialled: boolean): Peer {
  return { node, host: "127.0.0.1", port: links.port, isDialled };
}

/** Opens nodes 1 and 2, and waits until both see the link. */
export async function openPair(
  handler: LinkHandler,
  isEncrypted = false,
): Promise<{ one: Links; two: Links; close: () => Promise<void> }> {
  const security = { secret: "a secret of the cluster", isEncrypted };
  const one = await openLinks("1", handler, { security });
  const two = await openLinks("2", handler, { security });
  one.setPeers([peerOf("2", two, false)]);
  two.setPeers([peerOf("1", one, true)]);
  while (one.to("2") === null || two.to("1") === null) await new Promise((resolve) => setTimeout(resolve, 1));
  return {
    one,
    two,
    close: async () => {
      await Promise.all([one.close(), two.close()]);
    },
  };
}
