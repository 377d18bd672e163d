/**
 * Runs a program in a network of its own, in which only the port of a door exists: `unshare -rn node own-network.ts PORT SOCKET-FILE
 * PROGRAM ARGUMENTS…`. Connections to the port are passed to the socket file, which is outside of the network and reachable by its path.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";

const [port, socketFile = "", program = "", ...args] = process.argv.slice(2);

spawnSync("ip", ["link", "set", "lo", "up"], { stdio: "inherit" });
const bridge = createServer({ allowHalfOpen: true }, (client) => {
  const door = connect({ path: socketFile, allowHalfOpen: true });
  client.on("error", () => door.destroy()).pipe(door);
  door.on("error", () => client.destroy()).pipe(client);
});
bridge.listen(Number(port), "127.0.0.1");
await once(bridge, "listening");

const child = spawn(program, args, { stdio: "inherit" });
process.once("SIGTERM", () => child.kill("SIGTERM"));
const [code] = (await once(child, "exit")) as [number | null];
process.exit(code ?? 1);
