/** Ports for servers that are restarted at the same address. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range from which systems take the ports of outgoing connections: nothing else uses the port while the server is down. */
const FIRST = 20_000;
const COUNT = 10_000;
/** Workers run at the same time, so each has a range of its own. */
const WORKERS = 10;
const EACH = COUNT / WORKERS;
const start = FIRST + (Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS) * EACH;

/** One after the other, so that no port is given twice while its first server is down. */
let next = Math.floor(Math.random() * EACH);

export async function freePort(): Promise<number> {
  for (;;) {
    const port = start + (next++ % EACH);
    const server = createServer();
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
