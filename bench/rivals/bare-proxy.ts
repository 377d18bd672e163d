/** A relay without any gateway work: node:http in, undici's `dispatch` out, bytes piped. Prints its port as one line of JSON. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

const pool = new Pool(process.argv[2] ?? "", { connections: 256, pipelining: 1 });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const headers = { ...request.headers } as Record<string, string>;
    delete headers["connection"];
    delete headers["host"];
    pool.dispatch(
      { method: request.method ?? "GET", path: request.url ?? "/", headers, body: Buffer.concat(chunks) },
      {
        onRequestStart: () => undefined,
        onResponseStart(_controller, status, upstream) {
          const { connection: _connection, "transfer-encoding": _coding, ...rest } = upstream;
          response.writeHead(status, rest as Record<string, string>);
        },
        onResponseData(controller, data) {
          if (response.write(data)) return;
          controller.pause();
          response.once("drain", () => controller.resume());
        },
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
