/** Loaded into a node of a cluster: when the process gets SIGUSR2, it cuts the links that it has dialled, and no other connection. */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const sockets = new Set<Socket>();
subscribe("net.client.socket", (message) => {
  const { socket } = message as { socket: Socket };
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
});

const url = process.argv[process.argv.indexOf("--database-url") + 1] ?? "";
const database = URL.canParse(url) ? Number(new URL(url).port) : 0;

process.on("SIGUSR2", () => {
  for (const socket of sockets) if (socket.remotePort !== database) socket.destroy();
});
