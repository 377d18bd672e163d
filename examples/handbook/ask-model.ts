/** A streamed call of a model through the gateway of this service, without an SDK. */
import type { AgentEnvironment } from "signalbox";

export async function* askModel(
  env: AgentEnvironment,
  prompt: string,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const token = env["GATEWAY_TOKEN"];
  const response = await fetch(`${env["SIGNALBOX_URL"]}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      model: env["MODEL"] ?? "demo/quote",
      stream: true,
      messages: [{ role: "user", content: prompt }],
    }),
    signal,
  });
  if (!response.ok || response.body === null)
    throw new Error(`the model answered ${response.status}: ${await response.text()}`);
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const { choices } = JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] };
      const text = choices[0]?.delta.content;
      if (text) yield text;
    }
  }
}
