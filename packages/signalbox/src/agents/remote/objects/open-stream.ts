/** Opens streams to other nodes. */
import { type Link, LinkError, type LinkStream } from "../../../engines/node-link/index.ts";
import type { NodeInc } from "../../../core/node-inc.ts";
import { NotSentError } from "../../placement/placement.ts";

/** The returned function throws `NotSentError` if there is no link to the node, or the link takes no more. */
export function openOn(
  network: { linkTo(node: NodeInc): Pick<Link, "openStream"> | null },
  node: NodeInc,
  name: string,
): (payload: Uint8Array) => LinkStream {
  return (payload) => {
    const link = network.linkTo(node);
    if (link === null) throw new NotSentError(`there is no link to node ${node}`);
    try {
      return link.openStream(name, payload);
    } catch (error) {
      if (error instanceof LinkError && error.isUnsent) throw new NotSentError(error.message);
      throw error;
    }
  };
}
