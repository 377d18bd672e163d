/** Inside of the process: its socket to the process that started it. */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

const DESCRIPTOR = 3;

export function openParentSocket(): Duplex {
  const socket = new Socket({ fd: DESCRIPTOR, readable: true, writable: true });
  // The other process is gone, and with it the reason to run. Read now: later the function is out of reach.
  const { reallyExit } = process as NodeJS.Process & { reallyExit(code: number): never };
  const leave = () => reallyExit.call(process, 0);
  socket.on("error", leave);
  socket.on("close", leave);
  return socket;
}
