/** The lower bound for the listener: node:http with a fixed JSON response. Prints its address as one line of JSON. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const BODY = '{"status":"ok"}';

const server = createServer((_request, response) => {
  response.writeHead(200, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(BODY),
  });
  response.end(BODY);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
