/** Ports for servers that are restarted at the same address. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range from which systems take the ports of outgoing connections: nothing else uses the port while the server is down. */
const FIRST = 20_000;
const COUNT = 10_000;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
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
