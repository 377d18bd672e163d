/**
 * Connections that the supervisor is handing to one of its processes.
 *
 * Node's cluster module accepts connections in the supervisor, sends each to a process, and closes its own handle when the process confirms that it has
 * the connection. If the process dies before, Node forgets the handle: the connection stays open, and nobody answers it. Here such a connection goes to
 * another process: the one that died has read nothing of it, because it confirms first. Without another process the connection is closed.
 *
 * Besides, Node does not notice the end of a channel on which a handle is not confirmed, and would choose the dead process again. Both are repaired at the
 * moment at which the channel ends, before anything else can run.
 */
import type { Worker } from "node:cluster";

/** Messages of Node's cluster module. If their form changes, this does nothing, and a test fails. */
interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface Handle {
  close(): void;
}

/** `hasOthers`: whether another process accepts connections. */
export function rescueConnections(worker: Worker, hasOthers: () => boolean): void {
  const child = worker.process;
  const unconfirmed = new Map<number, Handle>();
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [message, handle] = args as [ClusterMessage | undefined, Handle | undefined];
    if (message?.act === "newconn" && message.seq !== undefined && handle != null)
      unconfirmed.set(message.seq, handle);
    return send(...args);
  };
  child.on("internalMessage", (message: ClusterMessage) => {
    if (message.ack !== undefined) unconfirmed.delete(message.ack);
  });
  const disconnect = child.disconnect.bind(child);
  // Node calls it when the channel has ended.
  child.disconnect = () => {
    // Takes the process off the list of those that get connections.
    worker.disconnect();
    for (const [seq, handle] of unconfirmed) {
      // What the process would send if it did not want the connection.
      if (hasOthers()) child.emit("internalMessage", { cmd: "NODE_CLUSTER", ack: seq, accepted: false });
      else handle.close();
    }
    unconfirmed.clear();
    disconnect();
  };
}
