/** WebSockets of objects while the link between their nodes breaks. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorkerCluster, type WorkerCluster } from "../worker/support/worker-cluster.ts";

const PRELOAD = join(import.meta.dirname, "../support/cut-links-preload.ts");

let cluster: WorkerCluster;
beforeAll(async () => {
  cluster = await startWorkerCluster(2, { env: { NODE_OPTIONS: `--import=${PRELOAD}` } });
});
afterAll(() => cluster.stop());

/** The node that joined last has dialled the other. */
const breakLink = () => process.kill(cluster.pids[1] ?? 0, "SIGUSR2");

test.each([
  ["at the node that has dialled", 1],
  ["at the node that was dialled", 0],
])(
  "a client %s keeps its WebSocket while the link breaks for a moment: no message is lost or doubled",
  async (_where, node) => {
    const room = await cluster.roomAt(1 - node);
    const ann = await cluster.connect(node, room, "ann");
    expect(await ann.next()).toBe("welcome ann");
    for (let i = 1; i <= 40; i++) {
      ann.socket.send(`m${i}`);
      if (i % 10 === 5) breakLink();
      const answer = await Promise.race([ann.next(), ann.closed.then(({ code }) => `"closed ${code}"`)]);
      expect(JSON.parse(answer)).toMatchObject({ messages: i, message: `m${i}`, user: "ann" });
    }
    expect(ann.messages).toHaveLength(41);
    ann.socket.close(4005, "over");
    await ann.closed;
    await expect
      .poll(() => cluster.call(node, `room/${room}/closes`))
      .toEqual([{ user: "ann", code: 4005, reason: "over", wasClean: true }]);
  },
);
