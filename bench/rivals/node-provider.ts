/**
 * The substitute for `load/provider.c` where there is no C compiler: same requests, same answers, several times the CPU time. Prints its
 * port as one line of JSON.
 */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { JSON_RESPONSE, MEAN_PAUSE_MS, STREAM_PARTS } from "./provider-answers.ts";

const BURST = Buffer.concat(STREAM_PARTS);
const HEAD_END = Buffer.from("\r\n\r\n");
const WANTS_STREAM = Buffer.from('"stream":true');
const WANTS_BURST = Buffer.from('"user":"burst"');

/** Ends early when the reader closes the connection. */
function stream(socket: Socket, next = 0): void {
  const part = STREAM_PARTS[next];
  if (part === undefined || !socket.writable) return;
  socket.write(part);
  setTimeout(stream, MEAN_PAUSE_MS * (0.5 + Math.random()), socket, next + 1);
}

function answer(socket: Socket, request: Buffer): void {
  if (!request.includes(WANTS_STREAM)) socket.write(JSON_RESPONSE);
  else if (request.includes(WANTS_BURST)) socket.write(BURST);
  else stream(socket);
}

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data: Buffer) => {
    pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
    for (;;) {
      const headEnd = pending.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(pending.toString("latin1", 0, headEnd + 2))?.[1];
      const end = headEnd + 4 + Number(length ?? 0);
      if (pending.length < end) return;
      answer(socket, pending.subarray(headEnd, end));
      pending = pending.subarray(end);
    }
  });
}

const server = createServer(serve);
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
