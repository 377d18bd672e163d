/** A provider for the screenshots: OpenAI-compatible responses with usage and realistic latency, and occasional errors. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const ANSWERS = [
  "The build failed because the lock file is older than the manifest. Run the install again and commit the result.",
  "Three customers asked for the same export. I have grouped them and drafted a reply for each.",
  "Nothing unusual: the latency follows the nightly backup and is back to normal at four.",
];

export interface Upstream {
  readonly url: string;
  close(): Promise<void>;
}

export async function startUpstream(): Promise<Upstream> {
  let calls = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      calls += 1;
      const n = calls;
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { model: string; stream?: boolean };
      setTimeout(
        () => {
          if (n % 23 === 0) {
            response.writeHead(429, { "content-type": "application/json" });
            response.end('{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}');
          } else if (body.stream === true) stream(response, body.model, n);
          else answer(response, body.model, n);
        },
        20 + ((n * 37) % 180),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Response = Parameters<NonNullable<Parameters<typeof createServer>[1]>>[1];

function usage(n: number): object {
  const input = 600 + ((n * 131) % 2400);
  const output = 80 + ((n * 53) % 500);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function text(n: number): string {
  return ANSWERS[n % ANSWERS.length] ?? "";
}

function answer(response: Response, model: string, n: number): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify({
      id: `chatcmpl-${n}`,
      object: "chat.completion",
      model,
      choices: [{ index: 0, message: { role: "assistant", content: text(n) }, finish_reason: "stop" }],
      usage: usage(n),
    }),
  );
}

function stream(response: Response, model: string, n: number): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (choices: unknown[], more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ id: `chatcmpl-${n}`, object: "chat.completion.chunk", model, choices, ...more })}\n\n`,
    );
  for (const word of text(n).split(/(?<= )/))
    send([{ index: 0, delta: { content: word }, finish_reason: null }]);
  send([{ index: 0, delta: {}, finish_reason: "stop" }]);
  send([], { usage: usage(n) });
  response.end("data: [DONE]\n\n");
}
